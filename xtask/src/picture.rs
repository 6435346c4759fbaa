//! A temperature field as a PNG.

use crate::command::{Failure, Outcome};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Stops of the colour map, from cold to hot: position, red, green, blue.
const COLOURS: [(f64, [f64; 3]); 5] = [
    (0.0, [12.0, 7.0, 60.0]),
    (0.25, [110.0, 20.0, 110.0]),
    (0.5, [205.0, 60.0, 70.0]),
    (0.75, [250.0, 150.0, 30.0]),
    (1.0, [252.0, 250.0, 180.0]),
];

/// Writes `rows × columns` values, scaled from their smallest to their largest, reduced to at most 800 pixels a side.
pub fn write_png(path: &Path, values: &[f64], rows: usize, columns: usize) -> Outcome {
    if rows == 0 || columns == 0 || values.len() != rows * columns {
        return Err(Failure(format!("a picture of {rows} x {columns} needs as many values, not {}", values.len())));
    }
    let step = rows.max(columns).div_ceil(800);
    let (height, width) = (rows.div_ceil(step), columns.div_ceil(step));
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)));
    let scale = if high > low { 1.0 / (high - low) } else { 0.0 };
    let mut pixels = Vec::with_capacity(3 * width * height);
    for row in 0..height {
        for column in 0..width {
            pixels.extend(colour((values[row * step * columns + column * step] - low) * scale));
        }
    }
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&pixels));
    written.map_err(|error| Failure(format!("writing {}: {error}", path.display())))
}

fn colour(at: f64) -> [u8; 3] {
    let upper = COLOURS.iter().position(|&(stop, _)| at <= stop).unwrap_or(COLOURS.len() - 1).max(1);
    let ((from, low), (to, high)) = (COLOURS[upper - 1], COLOURS[upper]);
    let part = ((at - from) / (to - from)).clamp(0.0, 1.0);
    std::array::from_fn(|channel| (low[channel] + part * (high[channel] - low[channel])).round() as u8)
}
