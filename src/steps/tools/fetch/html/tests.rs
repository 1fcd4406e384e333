use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn page() -> WebAddress {
    WebAddress::parse("https://a.example/b/c?q").unwrap()
}

fn text(html: &str) -> String {
    read(html, &page(), 1 << 20).text
}

#[test]
fn blocks_stand_between_empty_lines_and_lines_begin_lines() {
    for (html, expected) in [
        ("a<p>b</p>c", "a\n\nb\n\nc"),
        ("<p>a<p>b", "a\n\nb"),
        ("<h1>A</h1><h3>B <i>c</i></h3>d", "# A\n\n### B c\n\nd"),
        ("<ul><li>a<li> b</ul>c", "- a\n- b\n\nc"),
        ("<ul><li>a<ul><li>b</ul></ul>", "- a\n\n- b"),
        ("<div>a</div>b<div>c</div>", "a\nb\nc"),
        ("<div><div><div>a</div></div></div><section>b", "a\nb"),
        ("a<br>b<br/><br>c", "a\nb\nc"),
        ("<blockquote>a</blockquote>b", "a\n\nb"),
        ("<dl><dt>a<dd>b</dl>", "a\nb"),
        ("<p></p><p> </p><div></div>a<p></p>", "a"),
        ("<h2></h2><ul><li></ul>a", "a"),
        (" a \n\t b\u{a0}c ", "a b c"),
        ("a<b> b</b>c <i>d </i>e", "a bc d e"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn cells_of_a_row_are_joined() {
    for (html, expected) in [
        ("<table><tr><td>a<td>b<tr><th>c</th><th>d</th></table>e", "a | b\nc | d\n\ne"),
        ("<table><tr><td><p>a</p></td><td><div>b</div></td></tr></table>", "a | b"),
        ("x<table><tr><td></td><td>b</td><td></td></tr><tr><td>c</table>", "x\n\n| b |\nc"),
        ("<table><tr><td>a<td><table><tr><td>b<td>c</table><td>d</table>", "a |\nb | c | d"),
        ("<table><tr><td></table>x<p>y", "x\n\ny"),
        ("<table><tr><td>a<p>b</td></tr></table>", "a\n\nb"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn text_of_pre_stays_as_it_is() {
    for (html, expected) in [
        ("a<pre>\n  b\n   c  \n\n</pre>d", "a\n\n```\n  b\n   c\n```\n\nd"),
        ("<pre><code>a\n<b>b</b></code></pre>", "```\na\nb\n```"),
        ("<pre>a<br>b<div>c</div>d</pre>", "```\na\nb\nc\nd\n```"),
        ("<pre></pre>a", "a"),
        ("<pre>a", "```\na\n```"),
        ("<pre>a<pre>b</pre>c</pre>d", "```\nabc\n```\n\nd"),
        ("<li><pre>a</pre>b", "```\na\n```\n\nb"),
        ("a</pre>b", "ab"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn links_with_text_have_their_absolute_address() {
    for (html, expected) in [
        ("<a href=/x>a</a>", "[a](https://a.example/x)"),
        ("a <a href='d?e#f'> b <b>c</b> </a>d", "a [b c](https://a.example/b/d?e) d"),
        ("<a href=https://B.example>b</a>", "[b](https://b.example/)"),
        ("<a href='//b.example/ \u{e4}'>b</a>", "[b](https://b.example/%20%C3%A4)"),
        ("<a href=/x></a>b", "b"),
        ("<a href=/x><img src=y></a>b", "b"),
        ("<a href=/x><img alt=' p '></a>b", "[p](https://a.example/x)b"),
        ("<a href=#f>a</a>", "a"),
        ("<a href=javascript:x()>a</a>", "a"),
        ("<a href=mailto:x@y.example>a</a>", "a"),
        ("<a>a</a>", "a"),
        ("<a href=/x>a<a href=/y>b</a>", "[a](https://a.example/x)[b](https://a.example/y)"),
        ("<a href=/x><h2>a</h2>b</a>", "## [a](https://a.example/x)\n\nb"),
        ("<li><a href=/x>a</a><li>b", "- [a](https://a.example/x)\n- b"),
        ("<a href=/x>a", "[a](https://a.example/x)"),
        ("<base href=/d/><a href=e>a</a>", "[a](https://a.example/d/e)"),
        ("<base href=/d/><base href=/g/><a href=e>a</a>", "[a](https://a.example/d/e)"),
        ("<base href=data:x><a href=e>a</a>", "[a](https://a.example/b/e)"),
        ("<a href=/x href=/y>a</a>", "[a](https://a.example/x)"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn what_no_reader_needs_is_left_out_with_its_content() {
    for (html, expected) in [
        ("a<script>b</script>c", "ac"),
        ("a<script>if (x < y) { '</div>' }</script>c", "ac"),
        ("a<style>b</style><noscript><p>b</noscript><template><p>b</template>c", "ac"),
        ("a<svg><title>b</title><g></svg>c<svg/>d", "acd"),
        ("<a href=/x><svg><path/></svg>a</a>", "[a](https://a.example/x)"),
        ("a<nav>b<nav>c</nav>d</nav>e", "a\ne"),
        ("a<footer><p>b</footer>c<form><select><option>d</select>e</form>f", "a\nc\ne\nf"),
        ("a<!-- b --><!doctype html>c", "ac"),
        ("a<p hidden>b<p>c", "a\n\nc"),
        ("a<p hidden>b</p>c", "a\nc"),
        ("<div><p hidden>b</div>c", "c"),
        ("a<div hidden>b<div>c</div>d</div>e", "a\ne"),
        ("a<span aria-hidden=true>b</span>c<span aria-hidden=false>d</span>", "acd"),
        ("a<img hidden alt=b>c<br hidden>d", "acd"),
        ("<ul><li hidden>a<ul><li>b</ul><li>c</ul>d", "- c\n\nd"),
        ("<ul><li hidden>a</ul>d", "d"),
        ("<table><tr><td hidden>a<td>b<tr hidden><td>c<tr><td>d</table>e", "b\nd\n\ne"),
        ("<dl><dt hidden>a<dd>b</dl>", "b"),
        ("<html hidden><body hidden>a", "a"),
        ("<iframe><p>a</p></iframe>b", "b"),
        ("a<nav>b", "a"),
    ] {
        assert_eq!(text(html), expected, "{html}");
    }
}

#[test]
fn the_title_is_one_line_beside_the_text() {
    let title = |html: &str| read(html, &page(), 1000).title;
    assert_eq!(title("<p>a").as_deref(), None);
    assert_eq!(title("<title> </title>").as_deref(), None);
    assert_eq!(title("<title> A &amp;\n B</title>").as_deref(), Some("A & B"));
    assert_eq!(title("<svg><title>x</title></svg><title>A</title>").as_deref(), Some("A"));
    assert_eq!(title("<title>A</title><title>B</title>").as_deref(), Some("A"));
    assert_eq!(text("<head><title>A</title></head>b<title>B</title>c"), "bc");
    let long = title(&format!("<title>{}</title>", "a ".repeat(10_000))).unwrap();
    assert!(long.len() <= TITLE_BYTES_MAX);
}

#[test]
fn entities_are_decoded() {
    assert_eq!(
        text("&lt;b&gt; &amp;amp; &eacute;&#233;&#xe9; &copy"),
        "<b> &amp; \u{e9}\u{e9}\u{e9} \u{a9}"
    );
    assert_eq!(text("&unknown; &#0; &"), "&unknown; \u{fffd} &");
    assert_eq!(text("<a href='/?a=1&amp;b=2'>x</a>"), "[x](https://a.example/?a=1&b=2)");
}

#[test]
fn the_text_ends_at_its_limit() {
    let long = read(&"<p>a\u{e4}".repeat(100), &page(), 11);
    assert_eq!((long.text.as_str(), long.is_cut), ("a\u{e4}\n\na\u{e4}\n\na", true));
    let short = read("<p>abc", &page(), 3);
    assert_eq!((short.text.as_str(), short.is_cut), ("abc", false));
    let html = "<h1>\u{e4}b</h1><ul><li><a href=/x>c</a></ul><pre>d\ne</pre>";
    let whole = text(html);
    for limit in 0..=whole.len() {
        let read = read(html, &page(), limit);
        assert!(read.text.len() <= limit);
        assert_eq!(read.is_cut, limit < whole.len(), "{limit} {read:?}");
    }
}

#[test]
fn hostile_pages_take_no_longer_than_others() {
    let of_size = |part: &str| part.repeat((1 << 20) / part.len());
    let time = |html: &str| {
        let start = Instant::now();
        let read = read(html, &page(), 90_000);
        assert!(read.text.len() <= 90_000);
        start.elapsed()
    };
    let plain = time(&of_size("<div class=x>some text</div> "));
    for part in [
        "<a <a <a ",
        "<a href=/x ",
        "<a href=/x>y",
        "<a href='",
        "<",
        "</",
        "<!--",
        "<!-- -",
        "<![CDATA[",
        "&amp",
        "&",
        "&#x",
        "&#99999999999;",
        "<table><tr><td>",
        "<div>",
        "</div>",
        "<nav>",
        "<p hidden>",
        "<ul><li hidden>",
        "<pre>",
        "<pre></pre>",
        "<pre> \n",
        "<li><h1>",
        "<svg/>",
        "<title>",
        "<title>x</title>",
        "<script>",
        "<script><!--<script>",
        "<base href=a/>",
        "<x a a a a a",
        "<img alt=x>",
        "\u{a0}",
        "a ",
    ] {
        let hostile = time(&of_size(part));
        // Processors of test machines are shared, so the bound is wide; a quadratic time would be
        // thousands of times as long.
        let bound = plain.as_millis().max(20) * 60;
        assert!(hostile.as_millis() < bound, "{part}: {hostile:?}, {plain:?}");
    }
}

proptest! {
    #[test]
    fn no_line_begins_or_ends_with_white_space(
        parts in proptest::collection::vec(
            prop_oneof![
                "</?(p|div|ul|li|h1|h2|a href=x|table|tr|td|th|nav|b|br|form|p hidden|li hidden|title|svg)>",
                "[ a\u{a0}\u{e4}\n|#-]{0,6}",
                "&[a-z]{0,4};?",
                "[<>/=\"'!-]{0,4}",
            ],
            0..40,
        ),
    ) {
        let text = text(&parts.concat());
        for line in text.split('\n') {
            prop_assert_eq!(line.trim(), line, "{:?}", text);
        }
        prop_assert!(!text.contains("\n\n\n"), "{:?}", text);
        prop_assert_eq!(text.trim(), &text);
    }

    #[test]
    fn any_text_is_read(html in "[<>/!a-z &;#x\"'=?\\[\\]\u{e4}\u{0}-]{0,80}", limit in 0_usize..100) {
        prop_assert!(read(&html, &page(), limit).text.len() <= limit);
    }
}
