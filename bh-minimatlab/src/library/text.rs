//! Texts.

use super::extent;
use crate::device::Device;
use crate::display::general;
use crate::operators::matrix;
use crate::print;
use crate::source::{Fault, Outcome};
use crate::value::Value;

pub fn num2str(device: &Device, value: &Value, precision: Option<&Value>) -> Outcome<Value> {
    if let Value::Text(_) = value {
        return Ok(value.clone());
    }
    let from = matrix(device, value)?;
    let values = device.download(&from)?;
    if from.rows != 1 {
        return Err(Fault::new("num2str: only one row is supported"));
    }
    if let Some(Value::Text(template)) = precision {
        return Ok(Value::text(&print::format(device, template, std::slice::from_ref(value))?));
    }
    let largest = values.iter().filter(|value| value.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
    let digits = if largest == 0.0 { 0 } else { largest.log10().floor() as i64 };
    let whole = values.iter().all(|value| value.fract() == 0.0 || !value.is_finite());
    let negative = values.iter().any(|value| *value < 0.0);
    let (shown, width) = match precision {
        Some(precision) => {
            let count = extent(device, "num2str", precision)?.min(100);
            (count, count + 7 + usize::from(negative))
        }
        None if whole => (17, (digits.max(0) + 3) as usize + usize::from(negative)),
        None => {
            let count = (digits + 5).clamp(5, 16) as usize;
            (count, count + 7 + usize::from(negative))
        }
    };
    let text: String = values.iter().map(|value| format!("{:>width$}", general(*value + 0.0, shown))).collect();
    Ok(Value::text(text.trim()))
}
