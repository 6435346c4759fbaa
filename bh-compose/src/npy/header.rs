//! The header of NumPy's file format: a Python dictionary literal with exactly three keys.

use bh_bytecode::{DType, MAX_RANK};

/// The first bytes of every file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// The data begins at a multiple of this.
const ALIGNMENT: usize = 64;

/// NumPy's name of a type.
fn descriptor(dtype: DType) -> String {
    let kind = match dtype {
        DType::Bool => 'b',
        _ if dtype.is_complex() => 'c',
        _ if dtype.is_float() => 'f',
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 'u',
        _ => 'i',
    };
    let order = if dtype.size() == 1 { '|' } else { '<' };
    format!("{order}{kind}{}", dtype.size())
}

/// Everything before the data.
pub(super) fn head(dtype: DType, shape: &[i64]) -> Vec<u8> {
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let mut text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor(dtype), extents.trim_end());
    let before = MAGIC.len() + 4;
    let padding = ALIGNMENT - (before + text.len() + 1) % ALIGNMENT;
    text.push_str(&" ".repeat(padding % ALIGNMENT));
    text.push('\n');
    let mut head = MAGIC.to_vec();
    head.extend([1, 0]);
    head.extend((text.len() as u16).to_le_bytes());
    head.extend(text.as_bytes());
    head
}

type Found<T> = std::result::Result<T, String>;

/// The remaining text.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Consumes a token if it is next.
    fn accept(&mut self, token: &str) -> bool {
        self.skip_space();
        match self.0.strip_prefix(token) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Found<()> {
        if self.accept(token) { Ok(()) } else { Err(format!("the header has no {token} before '{}'", self.start())) }
    }

    /// The next characters, for messages.
    fn start(&self) -> String {
        self.0.trim_end().chars().take(20).collect()
    }

    /// A string in quotes.
    fn string(&mut self) -> Found<&'a str> {
        self.skip_space();
        let quote = self.0.chars().next().filter(|quote| "'\"".contains(*quote));
        let end = quote.and_then(|quote| self.0[1..].find(quote));
        let end = end.ok_or_else(|| format!("the header has no string at '{}'", self.start()))?;
        let text = &self.0[1..=end];
        self.0 = &self.0[end + 2..];
        Ok(text)
    }

    fn truth(&mut self) -> Found<bool> {
        match (self.accept("True"), self.accept("False")) {
            (true, false) => Ok(true),
            (false, true) => Ok(false),
            _ => Err(format!("'fortran_order' is neither True nor False at '{}'", self.start())),
        }
    }

    /// A tuple of extents. A comma follows each; the last of several may lack it.
    fn tuple(&mut self) -> Found<Vec<i64>> {
        self.expect("(")?;
        let mut extents = Vec::new();
        let mut comma = true;
        while !self.accept(")") {
            if !comma {
                return Err(format!("the header's shape is no tuple at '{}'", self.start()));
            }
            self.skip_space();
            let digits = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (number, rest) = self.0.split_at(digits);
            // Python 2 wrote long integers with an L.
            self.0 = rest.strip_prefix('L').unwrap_or(rest);
            let number = number.parse().map_err(|_| format!("there is no extent at '{number}{}'", self.start()))?;
            if extents.len() == MAX_RANK {
                return Err(format!("there are more than {MAX_RANK} dimensions"));
            }
            extents.push(number);
            comma = self.accept(",");
        }
        if extents.len() == 1 && !comma {
            return Err("the header's shape is a number in brackets, no tuple".into());
        }
        Ok(extents)
    }
}

/// Type, order and shape.
pub(super) fn parse(text: &str) -> Found<(DType, bool, Vec<i64>)> {
    let mut cursor = Cursor(text);
    let (mut dtype, mut fortran_order, mut shape) = (None, None, None);
    cursor.expect("{")?;
    let mut comma = true;
    while !cursor.accept("}") {
        if !comma {
            return Err(format!("a comma is missing in the header before '{}'", cursor.start()));
        }
        let key = cursor.string()?;
        cursor.expect(":")?;
        let again = match key {
            "descr" => dtype.replace(element(cursor.string()?)?).is_some(),
            "fortran_order" => fortran_order.replace(cursor.truth()?).is_some(),
            "shape" => shape.replace(cursor.tuple()?).is_some(),
            _ => return Err(format!("the header has an unknown key '{key}'")),
        };
        if again {
            return Err(format!("the header has '{key}' twice"));
        }
        comma = cursor.accept(",");
    }
    cursor.skip_space();
    if !cursor.0.is_empty() {
        return Err(format!("'{}' follows the header's end", cursor.start()));
    }
    let missing = |key: &str| format!("the header has no '{key}'");
    Ok((
        dtype.ok_or_else(|| missing("descr"))?,
        fortran_order.ok_or_else(|| missing("fortran_order"))?,
        shape.ok_or_else(|| missing("shape"))?,
    ))
}

fn element(name: &str) -> Found<DType> {
    let little = name.starts_with(['<', '|', '=']);
    let found = DType::ALL.into_iter().find(|&dtype| little && descriptor(dtype)[1..] == name[1..]);
    found.ok_or_else(|| format!("element type '{name}' is not supported"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_back() {
        for (dtype, shape) in
            [(DType::F64, vec![3, 4]), (DType::Bool, vec![]), (DType::C64, vec![7]), (DType::U16, vec![0, 2])]
        {
            let head = head(dtype, &shape);
            assert_eq!(head.len() % ALIGNMENT, 0);
            let text = String::from_utf8_lossy(&head[10..]).into_owned();
            assert_eq!(parse(&text), Ok((dtype, false, shape)));
        }
    }

    #[test]
    fn other_ways_to_write_a_head_are_read() {
        for text in [
            "{\"shape\": (2, 3), \"descr\": \"<f8\", \"fortran_order\": True}",
            "  { 'fortran_order' :True,'shape':( 2L,3L ,) , 'descr':'=f8' ,}\n",
        ] {
            assert_eq!(parse(text), Ok((DType::F64, true, vec![2, 3])), "{text}");
        }
        let parsed = parse("{'descr': '|b1', 'fortran_order': False, 'shape': ()}");
        assert_eq!(parsed, Ok((DType::Bool, false, vec![])));
    }

    #[test]
    fn damaged_heads_are_no_panic() {
        let good = String::from_utf8(head(DType::F32, &[3, 40, 5])[10..].to_vec()).unwrap();
        for at in 0..good.len() {
            for byte in [b'\'', b'(', b')', b',', b'9', b'-', b'{', b'}', b'L', b' '] {
                let mut bytes = good.clone().into_bytes();
                bytes[at] = byte;
                let _ = parse(std::str::from_utf8(&bytes).unwrap());
                bytes.remove(at);
                let _ = parse(std::str::from_utf8(&bytes).unwrap());
            }
            let _ = parse(&good[..at]);
        }
    }

    #[test]
    fn wrong_heads_are_refused() {
        for text in [
            "{}",
            "{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '', 'fortran_order': False, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': 3, }",
            "{'descr': '<f8', 'fortran_order': Falsehood, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': Trueish, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': 1, 'shape': (3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3 4), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,,4), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (+3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (0x3,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), ",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), } x",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}",
            "{'descr': '<f8' 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f8', 'shape': (3,)}",
            "{'descr: '<f8', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
