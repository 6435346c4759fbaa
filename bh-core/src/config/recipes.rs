//! Which results the recorder does not store.

/// Which results of a batch that nobody has asked for are made only when somebody does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recipes {
    /// None.
    Off,
    /// Large ones that were dropped unread when a batch of this structure came before.
    #[default]
    Auto,
    /// All that can be.
    Always,
}

impl super::Setting for Recipes {
    const FORM: &'static str = "auto, off or always";

    fn read(text: &str) -> Option<Recipes> {
        match text {
            "auto" => Some(Recipes::Auto),
            "off" => Some(Recipes::Off),
            "always" => Some(Recipes::Always),
            _ => None,
        }
    }
}
