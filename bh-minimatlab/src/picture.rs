//! Line pictures in a frame, as SVG and PNG.

use crate::display::general;
use crate::raster::Raster;
use crate::source::{Fault, Outcome};
use std::fmt::Write;

/// Size of a picture in pixels.
const WIDTH: usize = 640;
const HEIGHT: usize = 400;
/// The frame: left, top, right, bottom.
const FRAME: (f64, f64, f64, f64) = (60.0, 20.0, 620.0, 370.0);
/// Colours of lines, used in rotation.
const COLOURS: &[[u8; 3]] =
    &[[0, 114, 189], [217, 83, 25], [237, 177, 32], [126, 47, 142], [119, 172, 48], [77, 190, 238], [162, 20, 47]];

/// Points joined by a line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Horizontal coordinates.
    pub x: Vec<f64>,
    /// Vertical coordinates.
    pub y: Vec<f64>,
}

/// Lines in one frame.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The lines.
    pub lines: Vec<Line>,
}

/// A text with the position of its left end, on the base line.
struct Label {
    text: String,
    x: f64,
    y: f64,
}

/// Runs of points in pixels, separated at points that are not finite.
type Runs = Vec<Vec<(f64, f64)>>;

fn bounds<'a>(values: impl Iterator<Item = &'a f64>) -> (f64, f64) {
    let finite = values.copied().filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    match low.partial_cmp(&high) {
        Some(std::cmp::Ordering::Less) => (low, high),
        Some(std::cmp::Ordering::Equal) => (low - 0.5, low + 0.5),
        _ => (0.0, 1.0),
    }
}

impl Picture {
    /// Writes the picture in the format of the file's extension.
    pub fn write(&self, file: &str) -> Outcome<()> {
        let bytes = match file.rsplit_once('.') {
            Some((_, "svg")) => self.svg().into_bytes(),
            Some((_, "png")) => self.png()?,
            _ => return Err(Fault::new(format!("plot: '{file}' is neither .svg nor .png"))),
        };
        std::fs::write(file, bytes).map_err(|error| Fault::new(format!("plot: '{file}' cannot be written: {error}")))
    }

    /// Lines and labels in pixels.
    fn layout(&self) -> (Vec<Runs>, Vec<Label>) {
        let (left, top, right, bottom) = FRAME;
        let (x0, x1) = bounds(self.lines.iter().flat_map(|line| &line.x));
        let (y0, y1) = bounds(self.lines.iter().flat_map(|line| &line.y));
        let place = |x: f64, y: f64| {
            // Halved, so that differences of the largest numbers do not overflow.
            let part = |value: f64, low: f64, high: f64| (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
            (left + (right - left) * part(x, x0, x1), bottom - (bottom - top) * part(y, y0, y1))
        };
        let runs = self.lines.iter().map(|line| {
            let points: Vec<Option<(f64, f64)>> = line
                .x
                .iter()
                .zip(&line.y)
                .map(|(x, y)| (x.is_finite() && y.is_finite()).then(|| place(*x, *y)))
                .collect();
            points.split(Option::is_none).map(|run| run.iter().flatten().copied().collect()).collect()
        });
        let label = |value: f64, x: f64, y: f64| Label { text: general(value, 4), x, y };
        let labels = vec![
            label(x0, left, bottom + 16.0),
            label(x1, right - 30.0, bottom + 16.0),
            label(y0, 4.0, bottom),
            label(y1, 4.0, top + 8.0),
        ];
        (runs.collect(), labels)
    }

    fn svg(&self) -> String {
        let (left, top, right, bottom) = FRAME;
        let (width, height) = (right - left, bottom - top);
        let (lines, labels) = self.layout();
        // Writing to a text cannot fail.
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"black\"/>\n"
        );
        for (runs, [r, g, b]) in lines.iter().zip(COLOURS.iter().cycle()) {
            for run in runs.iter().filter(|run| !run.is_empty()) {
                let points: Vec<String> = run.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
                let points = points.join(" ");
                let _ =
                    writeln!(text, "<polyline fill=\"none\" stroke=\"#{r:02x}{g:02x}{b:02x}\" points=\"{points}\"/>");
            }
        }
        for Label { text: label, x, y } in labels {
            let _ = writeln!(text, "<text x=\"{x}\" y=\"{y}\" font-size=\"11\">{label}</text>");
        }
        text + "</svg>\n"
    }

    fn png(&self) -> Outcome<Vec<u8>> {
        let (left, top, right, bottom) = FRAME;
        let (lines, labels) = self.layout();
        let mut raster = Raster::new(WIDTH, HEIGHT);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        corners.windows(2).for_each(|side| raster.segment(side[0], side[1], [0, 0, 0]));
        for (runs, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            for run in runs {
                run.windows(2).for_each(|pair| raster.segment(pair[0], pair[1], *colour));
            }
        }
        for label in labels {
            raster.text(&label.text, label.x as usize, label.y as usize);
        }
        raster.png().map_err(|error| Fault::new(format!("plot: {error}")))
    }
}
