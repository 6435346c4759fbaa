//! `plot`, and the files of its pictures.

use super::text as needed_text;
use crate::device::Device;
use crate::operators::matrix;
use crate::picture::Line;
use crate::source::{Fault, Outcome};
use crate::value::Value;

pub use crate::picture::Picture;

fn is_file(text: &str) -> bool {
    text.ends_with(".svg") || text.ends_with(".png")
}

/// The picture of `plot(y)`, `plot(x, y)`, `plot(x, y, "r--", x, z)`, and the file if one is given.
pub fn picture(device: &Device, arguments: &[Value]) -> Outcome<(Picture, Option<String>)> {
    let mut file = None;
    let mut lines = Vec::new();
    let mut waiting: Option<Vec<f64>> = None;
    let alone = |y: Vec<f64>| Line { x: (1..=y.len()).map(|number| number as f64).collect(), y };
    for argument in arguments {
        if let Value::Text(text) = argument {
            // Any other text is a style, and ends a pair.
            if is_file(text) {
                file = Some(text.to_string());
            }
            lines.extend(waiting.take().map(alone));
            continue;
        }
        let values = device.download(&matrix(device, argument)?)?;
        match waiting.take() {
            None => waiting = Some(values),
            Some(x) if x.len() == values.len() => lines.push(Line { x, y: values }),
            Some(x) => {
                let text = format!("plot: vectors of {} and {} elements do not belong together", x.len(), values.len());
                return Err(Fault::new(text));
            }
        }
    }
    lines.extend(waiting.map(alone));
    if lines.is_empty() {
        return Err(Fault::new("Invalid call to plot"));
    }
    Ok((Picture { lines }, file))
}

/// The file that `print` or `saveas` names.
pub fn file(name: &str, arguments: &[Value]) -> Outcome<String> {
    let named = arguments.iter().find(|argument| matches!(argument, Value::Text(text) if !text.starts_with('-')));
    needed_text(name, named).map(str::to_owned)
}
