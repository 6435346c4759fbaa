//! The description of a configuration key: one row with name, type, default and text, which only its constant can read.

use std::marker::PhantomData;

/// A type for the value of a key.
pub trait Setting: Sized {
    /// The form of its values, as an error states it after "must be".
    const FORM: &'static str;

    /// Parses a value.
    fn read(text: &str) -> Option<Self>;
}

impl Setting for bool {
    const FORM: &'static str = "true or false";

    fn read(text: &str) -> Option<bool> {
        match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }
}

/// A word, a path, a list or a size: the reader checks the values.
impl Setting for String {
    const FORM: &'static str = "a text";

    fn read(text: &str) -> Option<String> {
        Some(text.to_owned())
    }
}

macro_rules! numbers {
    ($($type:ty = $form:literal;)*) => {$(
        impl Setting for $type {
            const FORM: &'static str = $form;

            fn read(text: &str) -> Option<$type> {
                text.parse().ok()
            }
        }
    )*};
}
numbers! {
    u32 = "a whole number from 0 to 4294967295";
    u64 = "a whole number from 0";
    usize = "a whole number from 0";
    f64 = "a number";
}

/// A row of a table of keys.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The section of the key: `memory`, or the name of the component.
    pub section: &'static str,
    /// The name.
    pub name: &'static str,
    /// Its former name in older configurations, if it had one.
    pub older: Option<&'static str>,
    /// The default, as written in a configuration file.
    pub default: &'static str,
    /// The meaning of the key and its values.
    pub text: &'static str,
    /// The form of the values; see [`Setting::FORM`].
    pub form: &'static str,
    /// Whether a text is of the key's type.
    pub is_legal: fn(&str) -> bool,
}

impl Row {
    /// The names for the key that a configuration may use.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.older)
    }

    /// The default as components get it: texts without quotes, lists joined by commas.
    pub fn default_text(&self) -> String {
        let list = self.default.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(self.default);
        let items: Vec<&str> = list.split(',').map(|item| item.trim().trim_matches('"')).collect();
        items.join(",")
    }
}

/// A key with values of type `T`. Only its constant can read a key, and [`crate::keys!`] creates the constant with the
/// row.
#[derive(Debug)]
pub struct Key<T> {
    row: Row,
    values: PhantomData<fn() -> T>,
}

impl<T: Setting> Key<T> {
    /// The key of a row. For [`crate::keys!`].
    #[doc(hidden)]
    pub const fn new(
        section: &'static str,
        name: &'static str,
        older: Option<&'static str>,
        default: &'static str,
        text: &'static str,
    ) -> Key<T> {
        let is_legal = |text: &str| T::read(text).is_some();
        Key { row: Row { section, name, older, default, text, form: T::FORM, is_legal }, values: PhantomData }
    }

    /// Its row.
    pub const fn row(&self) -> Row {
        self.row
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.row.name
    }

    /// The default.
    pub fn default(&self) -> T {
        T::read(&self.row.default_text()).unwrap_or_else(|| unreachable!("the default of key '{}'", self.row.name))
    }
}

/// A table of keys.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// Whether it belongs to a component.
    pub is_component: bool,
    /// The subject of its keys; empty for components.
    pub text: &'static str,
    /// Its keys.
    pub rows: &'static [Row],
}

/// Creates the table of keys of one component or section: a module with a constant for each key, and the list `ALL` of
/// rows.
///
/// ```
/// bh_core::keys! {
///     /// The keys of a component.
///     mod keys = "my-engine" {
///         THREADS "threads": u32 = "1", "Threads that share a kernel.";
///     }
/// }
/// assert_eq!((keys::THREADS.default(), keys::ALL.len()), (1, 1));
/// ```
#[macro_export]
macro_rules! keys {
    (
        $(#[$about:meta])*
        $visibility:vis mod $module:ident = $section:literal {
            $($constant:ident $name:literal $(or $older:literal)?: $type:ty = $default:literal, $text:literal;)*
        }
    ) => {
        $(#[$about])*
        $visibility mod $module {
            #[allow(unused_imports, reason = "for the types of keys")]
            use super::*;
            $(
                #[doc = $text]
                pub const $constant: $crate::config::Key<$type> =
                    $crate::config::Key::new($section, $name, $crate::keys!(@older $($older)?), $default, $text);
            )*
            /// All of them.
            pub const ALL: &[$crate::config::Row] = &[$($constant.row()),*];
        }
    };
    (@older) => { None };
    (@older $older:literal) => { Some($older) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_their_form_alone() {
        assert_eq!(["true", "1", "false", "0"].map(bool::read), [Some(true), Some(true), Some(false), Some(false)]);
        assert_eq!(["on", "True", ""].map(bool::read), [None; 3]);
        assert_eq!(
            ["0", "4294967295", "4294967296", "-1", "1.5"].map(u32::read),
            [Some(0), Some(u32::MAX), None, None, None]
        );
        assert_eq!(["2.5", "half"].map(f64::read), [Some(2.5), None]);
    }

    crate::keys! {
        mod some = "some" {
            WORD "word" or "term": String = "\"auto\"", "A word.";
            LIST "list": String = "[\"a\", \"b\"]", "A list.";
            NONE "none": String = "[]", "An empty list.";
            COUNT "count": u64 = "7", "A number.";
        }
    }

    #[test]
    fn defaults_are_values_as_components_get_them() {
        assert_eq!((some::WORD.default(), some::LIST.default()), ("auto".to_owned(), "a,b".to_owned()));
        assert_eq!((some::NONE.default(), some::COUNT.default()), (String::new(), 7));
        let names: Vec<&str> = some::ALL.iter().flat_map(Row::names).collect();
        assert_eq!(names, ["word", "term", "list", "none", "count"]);
    }
}
