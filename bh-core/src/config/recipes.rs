//! The policy for results that the recorder does not store.

/// Which unread results of a batch are computed only on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recipes {
    /// None.
    Off,
    /// Large ones, if an earlier batch of the same structure dropped them unread.
    #[default]
    Auto,
    /// All that allow it.
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
