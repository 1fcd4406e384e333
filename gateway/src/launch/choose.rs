//! Choice of the model for a client, if the user names none.

use crate::probe::models::{self, Model};

/// Maximum number of model names that an error message lists.
const SHOWN_MAX: usize = 20;

/// Names that the demo model lists: `creole demo` answers to both alike.
const DEMO: [&str; 2] = ["demo", "demo-small"];

/// Returns the only model that is loaded, else the only model. For the demo model, returns the
/// first of its names, because they are equivalent.
///
/// # Errors
/// No model is the clear choice; the text lists the names to choose from.
pub(crate) fn only(models: &[Model]) -> Result<Model, String> {
    match (models::only(models), models) {
        (Some(only), _) => Ok(only.clone()),
        _ if models.iter().all(models::is_embedding) => Err("it lists no model".to_owned()),
        (None, [first, ..]) if is_demo(models) => Ok(first.clone()),
        _ => Err(format!("choose a model with --model: {}", names(models))),
    }
}

/// Returns the models that clients can use for messages.
pub(crate) fn that_answer(models: &[Model]) -> impl Iterator<Item = &Model> {
    models.iter().filter(|model| !models::is_embedding(model))
}

/// Returns true if the listed names are exactly the demo model's names.
pub(crate) fn is_demo(models: &[Model]) -> bool {
    models.iter().map(|model| model.name.as_str()).eq(DEMO)
}

fn names(models: &[Model]) -> String {
    let mut names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    let more = names.len().saturating_sub(SHOWN_MAX);
    names.truncate(SHOWN_MAX);
    let mut text = names.join(", ");
    if more > 0 {
        text.push_str(&format!(", and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::models::{lacks, named};

    fn models(names: &[&str], loaded: &[&str]) -> Vec<Model> {
        let model = |name: &&str| Model {
            name: (*name).to_owned(),
            is_loaded: loaded.contains(name),
            ..Model::default()
        };
        names.iter().map(model).collect()
    }

    #[test]
    fn the_only_model_or_the_only_loaded_one_is_taken() {
        let taken =
            |names: &[&str], loaded: &[&str]| only(&models(names, loaded)).map(|model| model.name);
        assert_eq!(taken(&["a"], &[]).unwrap(), "a");
        assert_eq!(taken(&["a", "b"], &["b"]).unwrap(), "b");
        assert_eq!(taken(&["nomic-embed-text", "b"], &["nomic-embed-text"]).unwrap(), "b");
        assert_eq!(taken(&["a", "b"], &[]).unwrap_err(), "choose a model with --model: a, b");
        assert!(taken(&["a", "b"], &["a", "b"]).is_err());
        assert_eq!(taken(&[], &[]).unwrap_err(), "it lists no model");
    }

    #[test]
    fn of_the_demo_models_names_the_first_is_taken() {
        let taken = |names: &[&str]| only(&models(names, &[])).map(|model| model.name);
        assert_eq!(taken(&["demo", "demo-small"]).unwrap(), "demo");
        assert!(taken(&["demo", "other"]).is_err());
        assert!(taken(&["demo", "demo-small", "other"]).is_err());
    }

    #[test]
    fn a_model_that_is_asked_for_has_to_be_listed() {
        let models = models(&["a", "qwen3:latest"], &[]);
        let found = |wanted| named(&models, wanted);
        assert_eq!(found("a").unwrap().name, "a");
        assert_eq!(found("qwen3").unwrap().name, "qwen3:latest");
        assert_eq!(found("qwen-3"), None);
        let lacking = lacks("U", "qwen-3", &models);
        assert_eq!(lacking, "U does not list qwen-3; the nearest: qwen3:latest");
        assert_eq!(lacks("U", "x", &[]), "U does not list x; it lists none");
    }

    #[test]
    fn a_long_list_is_cut() {
        let names: Vec<String> = (0..30).map(|number| format!("m{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let error = only(&models(&names, &[])).unwrap_err();
        assert!(error.ends_with("m19, and 10 more"), "{error}");
    }
}
