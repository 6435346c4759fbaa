//! Places in the user's program.

use crate::Recorder;
use bh_core::error::Error;

/// The file name of places that only the bridge understands.
const TOKENS: &str = "\u{1}location";

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
        if let Some((_, number)) = error.origin.take_if(|(file, _)| file == TOKENS) {
            error.origin = self.resolver.get().and_then(|resolver| resolver(number));
        }
        error
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
