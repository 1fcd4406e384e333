//! Changes to a request by which a client loses an ability: an image, a document, or a forced tool
//! call.

use super::{ChangeRow, LACKS, Loss, WITH_TOOLS, WarningName};
use crate::profile::{ImageParts, ToolChoiceAny, ToolChoiceNamed};
use crate::upstream_error::refused::Refused;

/// Base row for changes that lose an ability.
const ROW: ChangeRow = ChangeRow { loss: Loss::Ability, ..super::ROW };

/// Changes that lose an ability, likeliest first.
pub(super) static ROWS: &[ChangeRow] = &[
    ChangeRow {
        change: Refused::ForcedTool,
        warning: WarningName::Key("tool_choice_any"),
        chat: WITH_TOOLS,
        responses: WITH_TOOLS,
        messages: true,
        narrow: |_, profile, _| {
            profile.tool_choice_any = ToolChoiceAny::Auto;
            profile.tool_choice_named = ToolChoiceNamed::OnlyTool;
        },
        places: "tool_choice",
        names: "forced function | force function | forced function calling | tool_choice | tool choice | toolchoice | forces tool | force tool | forced tool",
        lacks: LACKS,
        ..ROW
    },
    ChangeRow {
        change: Refused::Images,
        warning: WarningName::Code("images_refused"),
        chat: |_, context| context.refusable.images,
        responses: |_, context| context.refusable.images,
        messages: true,
        // A text names each image at the place where the image is left out.
        narrow: |_, profile, _| profile.image_parts = ImageParts::None,
        places: "messages.*.content.*.image_url | input.*.content.*.image_url | input.*.output.*.image_url",
        names: "only text | text only | image | vision | multimodal | multi modal | 图片 | 图像 | 视觉 | 多模态",
        lacks: LACKS,
        makes_text: true,
        ..ROW
    },
    ChangeRow {
        change: Refused::Documents,
        warning: WarningName::Code("documents_refused"),
        chat: |_, context| context.refusable.documents,
        responses: |_, context| context.refusable.documents,
        messages: true,
        narrow: |_, profile, _| profile.file_parts = false,
        places: "messages.*.content.*.file | input.*.content.*.file_data | input.*.output.*.file_data",
        names: "pdf | file part | input_file",
        lacks: LACKS,
        makes_text: true,
        ..ROW
    },
];
