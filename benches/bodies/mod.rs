//! Bodies like those of coding agents, generated: nothing in them was captured from anybody.
//!
//! The mix is what makes a request of such a client: a long system prompt, 20 tools with schemas,
//! and 40 turns in which calls and results with escaped source code alternate.

#[allow(dead_code, unreachable_pub, reason = "only some benchmarks run server tools")]
pub(crate) mod tools;

/// Numbers that look random and are the same in every run.
pub(crate) struct Dice(u64);

const WORDS: [&str; 24] = [
    "the",
    "file",
    "returns",
    "value",
    "error",
    "when",
    "request",
    "stream",
    "if",
    "buffer",
    "should",
    "be",
    "called",
    "with",
    "state",
    "of",
    "each",
    "token",
    "and",
    "function",
    "in",
    "caf\u{e9}",
    "is",
    "not",
];

impl Dice {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }

    /// Prose of about so many bytes, as the inside of a JSON string.
    fn prose(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            text.push_str(self.word());
            text.push_str(match self.below(24) {
                0 => ".\\n\\n",
                1 => ", ",
                2 => " \\\"",
                _ => " ",
            });
        }
        text
    }

    /// Source code: a line break, an indent and often quotes every 40 bytes.
    fn code(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 64);
        let mut line = 1;
        while text.len() < bytes {
            let indent = "    ".repeat(self.below(4));
            let (left, right) = (self.word(), self.word());
            text.push_str(&match self.below(3) {
                0 => format!("{line:>6}\\t{indent}let {left}_{right} = \\\"{right}\\\";\\n"),
                1 => format!("{line:>6}\\t{indent}if {left}.{right}() {{ return None; }}\\n"),
                _ => format!("{line:>6}\\t{indent}// {left} {right} {left}\\n"),
            });
            line += 1;
        }
        text
    }

    fn base64(&mut self, bytes: usize) -> String {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..bytes).map(|_| char::from(LETTERS[self.below(64)])).collect()
    }
}

/// A request of about so many bytes; `images` of them are in images.
pub(crate) fn request(bytes: usize, images: usize) -> String {
    let mut dice = Dice::new();
    let text = bytes - images;
    let (system, tools, turns) = (text / 10, text / 5, text * 7 / 10);
    let mut body = format!(
        "{{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":32000,\"stream\":true,\
         \"metadata\":{{\"user_id\":\"user_0123\"}},\"system\":[{{\"type\":\"text\",\"text\":\"{}\",\
         \"cache_control\":{{\"type\":\"ephemeral\"}}}}],\"tools\":[",
        dice.prose(system)
    );
    for number in 0..20 {
        let comma = if number == 0 { "" } else { "," };
        let each = tools / 20;
        body.push_str(&format!("{comma}{{\"name\":\"Tool{number}\",\"description\":\"{}\",\"input_schema\":{{\"type\":\"object\",\"properties\":{{", dice.prose(each / 2)));
        let mut property = 0;
        let end = body.len() + each / 2;
        while property == 0 || body.len() < end {
            let comma = if property == 0 { "" } else { "," };
            body.push_str(&format!(
                "{comma}\"{}_{property}\":{{\"type\":\"string\",\"description\":\"{}\"}}",
                dice.word(),
                dice.prose(40)
            ));
            property += 1;
        }
        body.push_str("},\"additionalProperties\":false}}");
    }
    body.push_str("],\"messages\":[{\"role\":\"user\",\"content\":\"");
    body.push_str(&dice.prose(turns / 40));
    body.push_str("\"}");
    for turn in 0..20 {
        let each = turns / 20;
        body.push_str(&format!(
            ",{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}},\
             {{\"type\":\"tool_use\",\"id\":\"toolu_{turn}\",\"name\":\"Tool{}\",\
             \"input\":{{\"path\":\"src/{turn}.rs\",\"text\":\"{}\"}}}}]}},\
             {{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_{turn}\",\
             \"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}",
            dice.prose(each / 8),
            turn % 20,
            dice.code(each / 4),
            dice.code(each / 2),
        ));
        if images > 0 {
            body.push_str(&format!(
                ",{{\"type\":\"image\",\"source\":{{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"{}\"}}}}",
                dice.base64(images / 20)
            ));
        }
        body.push_str("]}]}");
    }
    body.push_str("]}");
    body
}

/// A whole answer of about so many bytes.
pub(crate) fn answer(bytes: usize) -> String {
    let mut dice = Dice::new();
    format!(
        "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\
         \"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{}\",\
         \"tool_calls\":[{{\"id\":\"call_1\",\"type\":\"function\",\"function\":{{\"name\":\"Tool1\",\
         \"arguments\":\"{{\\\"path\\\":\\\"src/1.rs\\\"}}\"}}}}]}},\"finish_reason\":\"tool_calls\"}}],\
         \"usage\":{{\"prompt_tokens\":900,\"completion_tokens\":90,\"total_tokens\":990}}}}",
        dice.prose(bytes.saturating_sub(440))
    )
}

/// What a stream is made of.
#[derive(Clone, Copy)]
pub(crate) enum Says {
    Text,
    /// As OpenAI sends it: with random letters in each chunk.
    Padded,
    /// With a number of its own in each chunk.
    Numbered,
    Tools,
    Reasoning,
}

/// The data of 1,000 one-token chunks, and of the last one.
pub(crate) fn chunks(says: Says) -> Vec<String> {
    let mut dice = Dice::new();
    let mut chunks: Vec<String> = (0..1000)
        .map(|number| {
            let delta = match says {
                Says::Text if number == 0 => "\"role\":\"assistant\",\"content\":\"\"".to_owned(),
                Says::Text | Says::Padded | Says::Numbered => {
                    format!("\"content\":\" {}\"", dice.word())
                }
                Says::Reasoning => format!("\"reasoning_content\":\" {}\"", dice.word()),
                Says::Tools => tool_delta(number, &mut dice),
            };
            let mut chunk = chunk(&delta, "null");
            match says {
                Says::Padded => {
                    chunk.pop();
                    chunk.push_str(&format!(",\"obfuscation\":\"{}\"}}", dice.word()));
                }
                Says::Numbered => chunk.insert_str(1, &format!("\"number\":{number},")),
                _ => {}
            }
            chunk
        })
        .collect();
    let reason = if matches!(says, Says::Tools) { "\"tool_calls\"" } else { "\"stop\"" };
    chunks.push(chunk("", reason));
    chunks
}

/// Four calls, one after the other, of 250 fragments each.
fn tool_delta(number: usize, dice: &mut Dice) -> String {
    let call = number / 250;
    let rest = match number % 250 {
        0 => format!(
            "\"id\":\"call_{call}\",\"type\":\"function\",\"function\":{{\"name\":\"Tool{call}\",\"arguments\":\"\"}}"
        ),
        1 => "\"function\":{\"arguments\":\"{\\\"text\\\":\\\"\"}".to_owned(),
        249 => "\"function\":{\"arguments\":\"\\\"}\"}".to_owned(),
        _ => format!("\"function\":{{\"arguments\":\" {}\"}}", dice.word()),
    };
    format!("\"tool_calls\":[{{\"index\":{call},{rest}}}]")
}

fn chunk(delta: &str, finish: &str) -> String {
    format!(
        "{{\"id\":\"chatcmpl-8f2b1c\",\"object\":\"chat.completion.chunk\",\"created\":1763700000,\
         \"model\":\"qwen3-coder-30b\",\"system_fingerprint\":\"fp_1\",\"choices\":[{{\"index\":0,\
         \"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":{finish}}}]}}"
    )
}

/// The data of the events of a stream in Responses: 1,000 deltas of one token, and what stands
/// around them.
pub(crate) fn events(says: Says) -> Vec<String> {
    let mut dice = Dice::new();
    let (item, kind, place) = match says {
        Says::Tools => (
            "{\"id\":\"fc_0123456789abcdef\",\"type\":\"function_call\",\"call_id\":\"call_1\",\"name\":\"Tool1\",\"arguments\":\"\"}",
            "function_call_arguments",
            "\"item_id\":\"fc_0123456789abcdef\",\"output_index\":0",
        ),
        Says::Reasoning => (
            "{\"id\":\"rs_0123456789abcdef\",\"type\":\"reasoning\",\"summary\":[]}",
            "reasoning_summary_text",
            "\"item_id\":\"rs_0123456789abcdef\",\"output_index\":0,\"summary_index\":0",
        ),
        Says::Text | Says::Padded | Says::Numbered => (
            "{\"id\":\"msg_0123456789abcdef\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[]}",
            "output_text",
            "\"item_id\":\"msg_0123456789abcdef\",\"output_index\":0,\"content_index\":0",
        ),
    };
    let mut events = vec![format!(
        "{{\"type\":\"response.output_item.added\",\"sequence_number\":0,\"output_index\":0,\"item\":{item}}}"
    )];
    for number in 1..=1000 {
        let delta = match says {
            Says::Tools if number == 1 => "{\\\"text\\\":\\\"".to_owned(),
            Says::Tools if number == 1000 => "\\\"}".to_owned(),
            _ => format!(" {}", dice.word()),
        };
        let more = match says {
            Says::Padded => format!(",\"logprobs\":[],\"obfuscation\":\"{}\"", dice.word()),
            Says::Text | Says::Numbered => ",\"logprobs\":[]".to_owned(),
            Says::Tools | Says::Reasoning => String::new(),
        };
        events.push(format!(
            "{{\"type\":\"response.{kind}.delta\",\"sequence_number\":{number},{place},\"delta\":\"{delta}\"{more}}}"
        ));
    }
    events.push(
        "{\"type\":\"response.completed\",\"sequence_number\":1001,\"response\":{\"id\":\"resp_1\",\
         \"object\":\"response\",\"status\":\"completed\",\"model\":\"m\",\"output\":[],\"usage\":\
         {\"input_tokens\":900,\"output_tokens\":90,\"total_tokens\":990}}}"
            .to_owned(),
    );
    events
}

/// An event of Responses, which is named in a line of its own, too.
pub(crate) fn event(data: &str) -> String {
    let name = data.split('"').nth(3).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
