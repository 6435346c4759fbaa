//! Draws lines and digits in pixels.

/// Rows of a glyph, five bits each.
type Figure = [u8; 7];

/// The glyphs of numbers.
const FIGURES: &[(char, Figure)] = &[
    ('0', [14, 17, 19, 21, 25, 17, 14]),
    ('1', [4, 12, 4, 4, 4, 4, 14]),
    ('2', [14, 17, 1, 2, 4, 8, 31]),
    ('3', [31, 2, 4, 2, 1, 17, 14]),
    ('4', [2, 6, 10, 18, 31, 2, 2]),
    ('5', [31, 16, 30, 1, 1, 17, 14]),
    ('6', [6, 8, 16, 30, 17, 17, 14]),
    ('7', [31, 1, 2, 4, 8, 8, 8]),
    ('8', [14, 17, 17, 14, 17, 17, 14]),
    ('9', [14, 17, 17, 15, 1, 2, 12]),
    ('.', [0, 0, 0, 0, 0, 12, 12]),
    ('-', [0, 0, 0, 31, 0, 0, 0]),
    ('+', [0, 4, 4, 31, 4, 4, 0]),
    ('e', [0, 0, 14, 17, 31, 16, 14]),
];

/// An RGB picture, initially white.
pub struct Raster {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Raster {
    /// A white picture.
    pub fn new(width: usize, height: usize) -> Raster {
        Raster { width, height, pixels: vec![255; width * height * 3] }
    }

    /// Blends a colour into a pixel.
    fn cover(&mut self, x: i64, y: i64, part: f64, colour: [u8; 3]) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x >= self.width || y >= self.height {
            return;
        }
        let first = (y * self.width + x) * 3;
        for (old, new) in self.pixels[first..first + 3].iter_mut().zip(colour) {
            *old = (f64::from(*old) * (1.0 - part) + f64::from(new) * part).round() as u8;
        }
    }

    /// A line that covers two pixels of each column (or row, if it is steep) in proportion.
    pub fn segment(&mut self, from: (f64, f64), to: (f64, f64), colour: [u8; 3]) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steep = dy.abs() > dx.abs();
        let turn = |(x, y): (f64, f64)| if steep { (y, x) } else { (x, y) };
        let (mut begin, mut end) = (turn(from), turn(to));
        if begin.0 > end.0 {
            (begin, end) = (end, begin);
        }
        let slope = if end.0 > begin.0 { (end.1 - begin.1) / (end.0 - begin.0) } else { 0.0 };
        for step in begin.0.round() as i64..=end.0.round() as i64 {
            let across = begin.1 + slope * ((step as f64).clamp(begin.0, end.0) - begin.0);
            let (floor, part) = (across.floor() as i64, across - across.floor());
            for (place, part) in [(floor, 1.0 - part), (floor + 1, part)] {
                let (x, y) = if steep { (place, step) } else { (step, place) };
                self.cover(x, y, part, colour);
            }
        }
    }

    /// Draws a number from its left end, on its base line.
    pub fn text(&mut self, text: &str, x: usize, y: usize) {
        for (number, c) in text.chars().enumerate() {
            let Some((_, figure)) = FIGURES.iter().find(|(known, _)| *known == c) else { continue };
            for (row, bits) in figure.iter().enumerate() {
                for column in (0..5).filter(|column| bits >> (4 - column) & 1 == 1) {
                    self.cover((x + number * 6 + column) as i64, (y + row) as i64 - 7, 1.0, [0, 0, 0]);
                }
            }
        }
    }

    /// The picture as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header()?.write_image_data(&self.pixels)?;
        Ok(bytes)
    }
}
