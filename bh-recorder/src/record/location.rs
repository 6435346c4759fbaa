//! Places in the user's program.

use crate::Recorder;
use bh_core::error::Error;

/// The file name of places that only the bridge understands.
const TOKENS: &str = "\u{1}location";

/// The end of such a place in a text.
const END: char = '\u{2}';

/// Looks a place up by the number that the bridge gave it: file and line.
pub(crate) type Resolver = Box<dyn Fn(u32) -> Option<(String, u32)> + Send + Sync>;

/// A place in the user's program, to be named in errors.
#[derive(Clone, Copy, Debug)]
pub struct Location<'a> {
    /// File name, UTF-8.
    pub file: &'a [u8],
    /// Line from 1; 0 if unknown.
    pub line: u32,
}

/// A place in the text of an error, which is looked up when the error is returned.
pub(crate) fn marked(file: &str, line: u32) -> String {
    if file == TOKENS { format!("{TOKENS}:{line}{END}") } else { format!("{file}:{line}") }
}

impl Location<'_> {
    /// An unknown place.
    pub const UNKNOWN: Location<'static> = Location { file: &[], line: 0 };

    /// A place that the bridge can look up by this number, which is not 0.
    #[inline]
    pub const fn token(number: u32) -> Location<'static> {
        Location { file: TOKENS.as_bytes(), line: number }
    }
}

impl Recorder {
    /// Sets what looks up the places given by [`Location::token`]. It is called when an error is returned that has to name
    /// one, on the thread of the call, with no lock held. Only the first one counts.
    pub fn set_resolver(&self, resolver: impl Fn(u32) -> Option<(String, u32)> + Send + Sync + 'static) {
        let _ = self.resolver.set(Box::new(resolver));
    }

    /// Gives an error that is about to be returned the place that its number stands for.
    pub(crate) fn resolve(&self, mut error: Error) -> Error {
        let find = |number: u32| self.resolver.get().and_then(|resolver| resolver(number));
        if let Some((_, number)) = error.origin.take_if(|(file, _)| file == TOKENS) {
            error.origin = find(number);
        }
        while let Some(start) = error.text.find(TOKENS)
            && let Some(len) = error.text[start..].find(END)
        {
            let number = error.text[start + TOKENS.len() + 1..start + len].parse().ok();
            let place =
                number.and_then(find).map_or("an unknown place".into(), |(file, line)| format!("{file}:{line}"));
            error.text.replace_range(start..start + len + END.len_utf8(), &place);
        }
        error
    }

    /// The file and line of a place that only the bridge understands.
    pub(crate) fn looked_up(&self, file: &str, number: u32) -> Option<(String, u32)> {
        if file == TOKENS { self.resolver.get().and_then(|resolver| resolver(number)) } else { None }
    }

    /// A place as text.
    pub(crate) fn place(&self, location: Location<'_>) -> Option<String> {
        let (file, line) = match location.file {
            file if file == TOKENS.as_bytes() => self.resolver.get().and_then(|resolver| resolver(location.line))?,
            [] => return None,
            file => (String::from_utf8_lossy(file).into_owned(), location.line),
        };
        Some(format!("{file}:{line}"))
    }
}
