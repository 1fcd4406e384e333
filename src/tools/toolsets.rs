//! The members of the client's toolsets, each of which is a function of its own for the upstream:
//! `computer__zoom`, `browser__navigate`.

use super::typed::Builtin;

/// A toolset that the client runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Toolset {
    /// `toolset_name` in calls and results.
    pub(super) name: &'static str,
    /// Its functions.
    pub(super) members: &'static [Builtin],
    /// Those of them that are offered only when the client enables them.
    pub(super) disabled: &'static [&'static str],
}

/// `computer_toolset_20260801`
pub(super) static COMPUTER: Toolset = Toolset {
    name: "computer",
    members: &[
        Builtin {
            name: "key",
            description: "Press a key or a +-joined combination such as ctrl+s; repeat: 1 to 100, default 1.",
            input: "text string\nrepeat? integer",
        },
        Builtin {
            name: "hold_key",
            description: "Hold a key or combination for duration seconds (at most 300).",
            input: "duration integer\ntext string",
        },
        Builtin {
            name: "type",
            description: "Type a string at the keyboard focus.",
            input: "text string",
        },
        Builtin { name: "cursor_position", description: "Report the cursor position.", input: "" },
        Builtin {
            name: "mouse_move",
            description: "Move the cursor to coordinate without clicking.",
            input: "coordinate pair",
        },
        Builtin {
            name: "left_mouse_down",
            description: "Press and hold the left mouse button at the cursor.",
            input: "",
        },
        Builtin { name: "left_mouse_up", description: "Release the left mouse button.", input: "" },
        Builtin {
            name: "left_click",
            description: "Click the left mouse button at coordinate, or at the cursor when coordinate is omitted. text: modifier keys to hold, for example ctrl+shift.",
            input: "coordinate? pair\ntext? string",
        },
        Builtin {
            name: "left_click_drag",
            description: "Press the left button at start_coordinate, drag to coordinate and release. text: modifier keys to hold.",
            input: "coordinate pair\nstart_coordinate pair\ntext? string",
        },
        Builtin {
            name: "right_click",
            description: "Click the right mouse button at coordinate, or at the cursor. text: modifier keys to hold.",
            input: "coordinate? pair\ntext? string",
        },
        Builtin {
            name: "middle_click",
            description: "Click the middle mouse button at coordinate, or at the cursor. text: modifier keys to hold.",
            input: "coordinate? pair\ntext? string",
        },
        Builtin {
            name: "double_click",
            description: "Double-click the left mouse button at coordinate, or at the cursor. text: modifier keys to hold.",
            input: "coordinate? pair\ntext? string",
        },
        Builtin {
            name: "triple_click",
            description: "Triple-click the left mouse button at coordinate, or at the cursor. text: modifier keys to hold.",
            input: "coordinate? pair\ntext? string",
        },
        Builtin {
            name: "scroll",
            description: "Scroll by scroll_amount wheel clicks in scroll_direction at coordinate, or at the cursor. text: modifier keys to hold.",
            input: "scroll_amount integer\nscroll_direction up|down|left|right\ncoordinate? pair\ntext? string",
        },
        Builtin {
            name: "wait",
            description: "Wait for duration seconds (at most 300).",
            input: "duration integer",
        },
        Builtin { name: "screenshot", description: "Take a screenshot of the display.", input: "" },
        Builtin {
            name: "zoom",
            description: "Return an enlarged image of one rectangle of the display; region is [x0, y0, x1, y1] in full-screenshot pixels.",
            input: "region rectangle",
        },
    ],
    disabled: &[],
};

/// `browser_toolset_20260801`
pub(super) static BROWSER: Toolset = Toolset {
    name: "browser",
    members: &[
        Builtin {
            name: "navigate",
            description: "Open a URL in a tab, or go back, forward or reload when url is one of these words.",
            input: "url string\ntab_id? string",
        },
        Builtin {
            name: "list_tabs",
            description: "List all open tabs with id, title and URL.",
            input: "",
        },
        Builtin { name: "new_tab", description: "Open an empty tab and return its id.", input: "" },
        Builtin {
            name: "switch_tab",
            description: "Make a tab the active one.",
            input: "tab_id string",
        },
        Builtin { name: "close_tab", description: "Close a tab.", input: "tab_id string" },
        Builtin {
            name: "read_page",
            description: "Return the accessibility tree of the page, or of the subtree at ref, with element references. depth: default 15.",
            input: "depth? integer\nfilter? all|interactive\nref? string\ntab_id? string",
        },
        Builtin {
            name: "get_page_text",
            description: "Return the visible text of the page.",
            input: "tab_id? string",
        },
        Builtin {
            name: "read_console",
            description: "Return console output since the last read.",
            input: "tab_id? string",
        },
        Builtin {
            name: "read_network",
            description: "Return network requests since the last read.",
            input: "tab_id? string",
        },
        Builtin {
            name: "find",
            description: "Find up to 20 elements by a description in natural language.",
            input: "query string\ntab_id? string",
        },
        Builtin {
            name: "form_input",
            description: "Set the value of a form element.",
            input: "target element\nvalue scalar\ntab_id? string",
        },
        Builtin {
            name: "file_upload",
            description: "Set the files of a file input; give paths or document_ids.",
            input: "target element\ndocument_ids? strings\npaths? strings\ntab_id? string",
        },
        Builtin {
            name: "scroll_to",
            description: "Scroll an element into view.",
            input: "target element\ntab_id? string",
        },
        Builtin {
            name: "screenshot",
            description: "Capture the viewport.",
            input: "tab_id? string",
        },
        Builtin {
            name: "zoom",
            description: "Capture one rectangle of the viewport, enlarged; region is [x0, y0, x1, y1] in viewport pixels.",
            input: "region rectangle\ntab_id? string",
        },
        Builtin {
            name: "left_click",
            description: "Left-click a coordinate or an element.",
            input: "target target\nmodifiers? string\ntab_id? string",
        },
        Builtin {
            name: "right_click",
            description: "Right-click a coordinate or an element.",
            input: "target target\nmodifiers? string\ntab_id? string",
        },
        Builtin {
            name: "middle_click",
            description: "Middle-click a coordinate or an element.",
            input: "target target\nmodifiers? string\ntab_id? string",
        },
        Builtin {
            name: "double_click",
            description: "Double-click a coordinate or an element.",
            input: "target target\nmodifiers? string\ntab_id? string",
        },
        Builtin {
            name: "triple_click",
            description: "Triple-click a coordinate or an element.",
            input: "target target\nmodifiers? string\ntab_id? string",
        },
        Builtin {
            name: "hover",
            description: "Move the pointer over a coordinate or an element without clicking.",
            input: "target target\ntab_id? string",
        },
        Builtin {
            name: "left_click_drag",
            description: "Press at from, drag to target and release; both are coordinates.",
            input: "from place\ntarget place\ntab_id? string",
        },
        Builtin {
            name: "left_mouse_down",
            description: "Press the left button at a coordinate.",
            input: "target place\ntab_id? string",
        },
        Builtin {
            name: "left_mouse_up",
            description: "Release the left button at a coordinate.",
            input: "target place\ntab_id? string",
        },
        Builtin {
            name: "mouse_move",
            description: "Move the pointer to a coordinate.",
            input: "target place\ntab_id? string",
        },
        Builtin {
            name: "scroll",
            description: "Scroll at a coordinate; scroll_amount: wheel notches 1 to 10, default 3.",
            input: "scroll_direction up|down|left|right\ntarget place\nscroll_amount? integer\ntab_id? string",
        },
        Builtin {
            name: "type",
            description: "Type a literal string at the focus.",
            input: "text string\ntab_id? string",
        },
        Builtin {
            name: "key",
            description: "Press a key, a +-joined chord, or a space-separated sequence; repeat: default 1.",
            input: "text string\nrepeat? integer\ntab_id? string",
        },
        Builtin {
            name: "hold_key",
            description: "Hold a key or chord for duration seconds (at most 30).",
            input: "duration number\ntext string\ntab_id? string",
        },
        Builtin {
            name: "wait",
            description: "Wait for duration seconds (at most 30).",
            input: "duration number\ntab_id? string",
        },
        Builtin {
            name: "javascript_exec",
            description: "Evaluate a JavaScript expression in the page and return its value.",
            input: "text string\ntab_id? string",
        },
    ],
    disabled: &["javascript_exec", "file_upload", "read_console", "read_network"],
};
