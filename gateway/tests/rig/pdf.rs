//! PDFs, as programs write them, and as nobody should.

/// The dictionary of a font that every reader has.
const FONT: &str = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>";

/// A file of these objects, of which the first is the catalogue, and the second the root of the
/// pages.
pub fn file(objects: &[Vec<u8>]) -> Vec<u8> {
    let (mut out, mut at) = (b"%PDF-1.4\n".to_vec(), Vec::new());
    for (number, object) in (1..).zip(objects) {
        at.push(out.len());
        out.extend(format!("{number} 0 obj\n").bytes().chain(object.iter().copied()));
        out.extend(b"\nendobj\n");
    }
    let (table, size) = (out.len(), objects.len() + 1);
    out.extend(format!("xref\n0 {size}\n0000000000 65535 f \n").bytes());
    at.iter().for_each(|at| out.extend(format!("{at:010} 00000 n \n").bytes()));
    out.extend(format!("trailer <</Size {size}/Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n").bytes());
    out
}

pub fn stream(dict: &str, data: &str) -> Vec<u8> {
    format!("<<{dict}/Length {}>>stream\n{data}\nendstream", data.len()).into_bytes()
}

/// Pages with these contents, written in the language that draws pages. Their resources are those
/// of `more`, and a font `/F`.
pub fn drawn(pages: &[String], more: &str) -> Vec<u8> {
    file(&objects(pages, more))
}

fn objects(pages: &[String], more: &str) -> Vec<Vec<u8>> {
    let kids: Vec<_> = (0..pages.len()).map(|at| format!("{} 0 R", 4 + 2 * at)).collect();
    let root = format!("<</Type/Pages/Count {}/Kids[{}]>>", pages.len(), kids.join(" "));
    let mut objects = vec![b"<</Type/Catalog/Pages 2 0 R>>".to_vec(), root.into(), FONT.into()];
    for (at, page) in pages.iter().enumerate() {
        let contents = format!("{} 0 R", 5 + 2 * at);
        objects.push(leaf(&contents, more).into());
        objects.push(stream("", page));
    }
    objects
}

/// A page with these contents.
fn leaf(contents: &str, more: &str) -> String {
    format!(
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {contents}/Resources<</Font<</F 3 0 R>>{more}>>>>"
    )
}

/// A line of text.
pub fn line(y: u32, text: &str) -> String {
    format!("BT /F 12 Tf 50 {y} Td ({text}) Tj ET\n")
}

/// A page for each of these lines.
pub fn pages(lines: &[&str]) -> Vec<u8> {
    let pages: Vec<_> = lines.iter().map(|text| line(700, text)).collect();
    drawn(&pages, "")
}

/// Pages that a scanner made: each is an image.
pub fn scan(pages: usize) -> Vec<u8> {
    let page = "q 600 0 0 800 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q".to_owned();
    drawn(&vec![page; pages], "")
}

/// A page whose contents are this text so many times.
pub fn repeated(text: &str, times: usize) -> Vec<u8> {
    let contents = format!("[{}]", "5 0 R ".repeat(times));
    file(&[
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[4 0 R]>>".to_vec(),
        FONT.into(),
        leaf(&contents, "").into(),
        stream("", text),
    ])
}

/// A page for each of these lines, and one that takes minutes and little memory: it has forms, each
/// of which draws the next one twice.
pub fn slow(lines: &[&str]) -> Vec<u8> {
    let mut pages: Vec<_> = lines.iter().map(|text| line(700, text)).collect();
    pages.push("/X Do".to_owned());
    // Catalogue, root and font, and two objects for each page.
    let first = 4 + 2 * pages.len();
    let form = |at| format!("/XObject<</X {at} 0 R>>");
    let mut objects = objects(&pages, &form(first));
    for at in first + 1..first + 30 {
        let dict = format!("/Subtype/Form/BBox[0 0 9 9]/Resources<<{}>>", form(at));
        objects.push(stream(&dict, "/X Do /X Do"));
    }
    objects.push(stream("/Subtype/Form/BBox[0 0 9 9]", "0 0 m"));
    file(&objects)
}
