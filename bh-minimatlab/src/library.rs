//! The built-in functions.

mod create;
mod elementwise;
mod fold;
mod order;
mod plot;
mod text;

use crate::device::Device;
use crate::evaluate::Interpreter;
use crate::operators::{function, scalar, transpose};
use crate::print;
use crate::source::{Fault, Outcome};
use crate::value::Value;
use std::time::Instant;

pub use fold::{is_fold, whole};

fn number(device: &Device, name: &str, value: &Value) -> Outcome<f64> {
    scalar(device, value)?
        .ok_or_else(|| Fault::new(format!("{name}: a single number is needed, not a {}", value.kind())))
}

fn extent(device: &Device, name: &str, value: &Value) -> Outcome<usize> {
    let number = number(device, name, value)?;
    if number.is_nan() || number.fract() != 0.0 || number > 1e15 {
        return Err(Fault::new(format!("{name}: dimensions must be whole numbers")));
    }
    Ok(number.max(0.0) as usize)
}

/// Rows and columns from arguments.
fn sizes(device: &Device, name: &str, arguments: &[Value]) -> Outcome<(usize, usize)> {
    match arguments {
        [] => Ok((1, 1)),
        [one] if one.len() == 1 => extent(device, name, one).map(|side| (side, side)),
        [Value::Matrix(both)] if both.len() == 2 => {
            let both = device.download(both)?;
            Ok((extent(device, name, &Value::Number(both[0]))?, extent(device, name, &Value::Number(both[1]))?))
        }
        [rows, cols] => Ok((extent(device, name, rows)?, extent(device, name, cols)?)),
        _ => Err(Fault::new(format!("{name}: arrays with more than two dimensions are not supported"))),
    }
}

fn needs(name: &str, arguments: &[Value], from: usize, to: usize) -> Outcome<()> {
    if (from..=to).contains(&arguments.len()) { Ok(()) } else { Err(Fault::new(format!("Invalid call to {name}"))) }
}

fn text<'a>(name: &str, value: Option<&'a Value>) -> Outcome<&'a str> {
    match value {
        Some(Value::Text(text)) => Ok(text),
        _ => Err(Fault::new(format!("{name}: a text is needed"))),
    }
}

/// Calls a built-in function.
pub fn call(run: &mut Interpreter, name: &str, arguments: Vec<Value>, wanted: usize) -> Outcome<Vec<Value>> {
    let device = &run.device;
    let one = |value: Value| Ok(vec![value]);
    match name {
        "pi" if arguments.is_empty() => return one(Value::Number(std::f64::consts::PI)),
        "e" if arguments.is_empty() => return one(Value::Number(std::f64::consts::E)),
        "eps" if arguments.is_empty() => return one(Value::Number(f64::EPSILON)),
        "Inf" | "inf" | "NaN" | "nan" | "NA" | "zeros" | "ones" | "true" | "false" | "eye" | "rand" | "randn" => {
            return create::filled(device, name, &arguments).map(|value| vec![value]);
        }
        "nargin" => return one(Value::Number(run.argument_count() as f64)),
        "disp" | "display" => {
            needs(name, &arguments, 1, 1)?;
            run.display(&arguments[0])?;
            return Ok(Vec::new());
        }
        "printf" | "fprintf" | "sprintf" | "error" => {
            let skip =
                usize::from(name == "fprintf" && matches!(arguments.first(), Some(Value::Number(n)) if *n == 1.0));
            let template = text(name, arguments.get(skip))?;
            let printed = print::format(device, template, arguments.get(skip + 1..).unwrap_or(&[]))?;
            match name {
                "sprintf" => return one(Value::text(&printed)),
                "error" => return Err(Fault::new(printed)),
                _ => run.print(&printed)?,
            }
            return Ok(Vec::new());
        }
        "feval" => {
            let Some((first, rest)) = arguments.split_first() else {
                return needs(name, &[], 1, 1).map(|()| Vec::new());
            };
            return match first {
                Value::Function(function) => run.call_value(&function.clone(), rest.to_vec(), wanted),
                Value::Text(callee) => run.call(&callee.clone(), rest.to_vec(), wanted),
                _ => Err(Fault::new("feval: a function is needed")),
            };
        }
        "exist" => {
            let found = text(name, arguments.first())?;
            return one(Value::Number(f64::from(u8::from(run.variable(found).is_some() || run.has_function(found)))));
        }
        "find" => return order::find(device, &arguments, wanted),
        "figure" | "hold" | "drawnow" => return Ok(Vec::new()),
        "tic" => {
            run.started = Some(Instant::now());
            return Ok(Vec::new());
        }
        "toc" => {
            // Earlier recorded work counts towards the time.
            device.wait()?;
            let Some(started) = run.started else { return Err(Fault::new("toc: there was no tic")) };
            let seconds = started.elapsed().as_secs_f64();
            if wanted > 0 {
                return one(Value::Number(seconds));
            }
            run.print(&format!("Elapsed time is {seconds} seconds\n"))?;
            return Ok(Vec::new());
        }
        "plot" => {
            let (picture, file) = plot::picture(device, &arguments)?;
            picture.write(file.as_deref().unwrap_or("plot.svg"))?;
            run.picture = Some(picture);
            return Ok(Vec::new());
        }
        "print" | "saveas" => {
            let file = plot::file(name, &arguments)?;
            let Some(picture) = &run.picture else { return Err(Fault::new(format!("{name}: nothing is plotted"))) };
            picture.write(&file)?;
            return Ok(Vec::new());
        }
        "size" => return create::size(device, &arguments, wanted),
        "sort" | "max" | "min" if wanted > 1 || name == "sort" => {
            return order::ordered(device, name, &arguments, wanted);
        }
        _ => {}
    }
    if let [value] = arguments.as_slice()
        && let Some(result) = function(device, name, value)?
    {
        return one(result);
    }
    simple(device, name, &arguments).map(|value| vec![value])
}

/// Functions with one result.
fn simple(device: &Device, name: &str, arguments: &[Value]) -> Outcome<Value> {
    match name {
        "sum" | "prod" | "mean" | "any" | "all" | "cumsum" | "cumprod" => {
            needs(name, arguments, 1, 2)?;
            fold::reduced(device, name, &arguments[0], arguments.get(1))
        }
        "min" | "max" => match arguments {
            [a, b] => fold::extreme(device, name, a, b),
            [a, _, dimension] => fold::reduced(device, name, a, Some(dimension)),
            [a] => fold::reduced(device, name, a, None),
            _ => Err(Fault::new(format!("Invalid call to {name}"))),
        },
        "mod" | "rem" | "atan2" => {
            needs(name, arguments, 2, 2)?;
            elementwise::paired(device, name, &arguments[0], &arguments[1])
        }
        "round" | "double" | "logical" => {
            needs(name, arguments, 1, 1)?;
            elementwise::single(device, name, &arguments[0])
        }
        "numel" | "length" | "rows" | "columns" | "ndims" | "isempty" | "isscalar" | "isvector" | "ismatrix"
        | "issquare" | "isrow" | "iscolumn" | "islogical" | "isnumeric" | "isreal" | "ischar" => {
            needs(name, arguments, 1, 1)?;
            create::property(name, &arguments[0])
        }
        "transpose" => {
            needs(name, arguments, 1, 1)?;
            transpose(device, &arguments[0])
        }
        "reshape" => create::reshape(device, arguments),
        "repmat" => create::repmat(device, arguments),
        "linspace" => create::linspace(device, arguments),
        "fliplr" | "flipud" => {
            needs(name, arguments, 1, 1)?;
            create::flipped(device, &arguments[0], name == "flipud")
        }
        "isequal" => {
            needs(name, arguments, 2, 2)?;
            elementwise::equal(device, &arguments[0], &arguments[1])
        }
        "num2str" => {
            needs(name, arguments, 1, 2)?;
            text::num2str(device, &arguments[0], arguments.get(1))
        }
        "strcmp" => match arguments {
            [Value::Text(a), Value::Text(b)] => Ok(Value::Truth(a == b)),
            [_, _] => Ok(Value::Truth(false)),
            _ => Err(Fault::new("Invalid call to strcmp")),
        },
        _ => Err(Fault::new(format!("'{name}' undefined"))),
    }
}
