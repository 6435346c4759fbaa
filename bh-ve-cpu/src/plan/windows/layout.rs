//! Where the line buffers of a sliding window begin. Vectors that lie across two lines of the caches take twice as long to read, and
//! longer to write. Arrays in memory begin where their views say; line buffers may begin anywhere, and so
//! they begin such that, in the nest that writes them, they lie in their lines as the arrays in memory do.

use bh_kernel::{Home, SlidingNest, SlidingWindow, SlotMode};

/// Bytes of a line.
const LINE: i64 = 64;
/// Shorter rows, in lines, stay as they are.
const SHORT: i64 = 8;

/// Makes the rows of line buffers whole lines long where they need not follow each other. Returns how many bytes behind a
/// line's beginning those of each array begin.
pub(super) fn align(window: &mut SlidingWindow) -> Vec<usize> {
    for array in 0..window.arrays.len() as u32 {
        lengthen(window, array);
    }
    let mut begins = vec![None; window.arrays.len()];
    for (known, array) in begins.iter_mut().zip(&window.arrays) {
        if !matches!(array.home, Home::Rolling { .. }) {
            *known = Some(0);
        }
    }
    for nest in &window.nests {
        let slots = || 0..nest.arrays.len();
        let mode = |slot: usize| nest.stage.kernel.slots[slot].mode;
        // How far the first element lies behind a line's beginning.
        let place = |slot: usize, begin: i64| {
            let array = window.arrays.get(nest.arrays[slot] as usize)?;
            let size = array.dtype.size() as i64;
            Some((begin + nest.stage.parameters.starts[slot] * size).rem_euclid(LINE))
        };
        let begin = |slot: usize| begins.get(nest.arrays[slot] as usize).copied().flatten();
        let guide = slots().find_map(|slot| place(slot, begin(slot)?).filter(|_| mode(slot) != SlotMode::Index));
        let own: Vec<(usize, i64)> = slots()
            .filter(|&slot| mode(slot) == SlotMode::Write && begin(slot).is_none())
            .filter_map(|slot| Some((nest.arrays[slot] as usize, place(slot, 0)?)))
            .collect();
        for (array, place) in own {
            // The guide may have shorter elements, which begin anywhere.
            let size = window.arrays[array].dtype.size() as i64;
            begins[array] = Some((guide.unwrap_or(0) - place).rem_euclid(LINE) / size * size);
        }
    }
    begins.into_iter().map(|begin| begin.unwrap_or(0) as usize).collect()
}

/// Lengthens the rows of an array to whole lines, if its slots allow that.
fn lengthen(window: &mut SlidingWindow, number: u32) {
    let Some(array) = window.arrays.get_mut(number as usize) else { return };
    let Home::Rolling { apart: true, .. } = array.home else { return };
    let (pitch, elements) = (array.pitch, LINE / (array.dtype.size() as i64).min(LINE));
    let longer = (pitch + elements - 1) / elements * elements;
    let fits = |nest: &SlidingNest| {
        let mut slots = nest.arrays.iter().enumerate().filter(|(_, array)| **array == number);
        slots.all(|(slot, _)| nest.stage.parameters.stride(slot)[0] == pitch)
    };
    if longer == pitch || pitch < SHORT * elements || !window.nests.iter().all(fits) {
        return;
    }
    array.pitch = longer;
    let joined = window.turns.iter_mut().filter_map(|turn| turn.joined.as_mut());
    for nest in window.nests.iter_mut().chain(joined) {
        let parameters = &mut nest.stage.parameters;
        let rank = parameters.extents.len();
        for slot in (0..nest.arrays.len()).filter(|&slot| nest.arrays[slot] == number) {
            let (row, column) = (parameters.starts[slot].div_euclid(pitch), parameters.starts[slot].rem_euclid(pitch));
            parameters.starts[slot] = row * longer + column;
            parameters.strides[slot * rank] = longer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bh_bytecode::text::parse;
    use bh_kernel::{SlidingArray, Survey, WindowOptions, windows};

    /// Differences between rows and then of those, of the inside of a grid with rows of `n` elements.
    fn window(n: i64) -> SlidingWindow {
        let (inner, elements) = (n - 2, 100 * n);
        let text = format!(
            "bh batch 1
base b0 = f64[{elements}] id 1 live_out
base b1 = f64[{}] id 2 born dies
base b2 = f64[{elements}] id 3 live_out
view v0 = b0 at 1 [99:{n}, {inner}:1]
view v1 = b0 at {} [99:{n}, {inner}:1]
view v2 = b1 at 0 [99:{inner}, {inner}:1]
view v3 = b1 at 0 [98:{inner}, {inner}:1]
view v4 = b1 at {inner} [98:{inner}, {inner}:1]
view v5 = b2 at {} [98:{n}, {inner}:1]
i0: v2 = subtract v1, v0
i1: v5 = subtract v4, v3
",
            99 * inner,
            n + 1,
            n + 1
        );
        let mut batch = parse(&text).unwrap();
        for index in 0..2 {
            batch.push_block(&[index], &[]);
        }
        windows(&Survey::new(&batch.as_ref()), &WindowOptions { bytes: 20_000, stand_ins: true }, &[]).found.remove(0)
    }

    #[test]
    fn buffered_elements_are_aligned_beside_shorter_ones() {
        let text = "bh batch 1
base b0 = u8[10400] id 1 live_out
base b1 = f64[10296] id 2 born dies
base b2 = f64[10192] id 3 live_out
view v0 = b0 at 3 [99:104, 98:1]
view v1 = b1 at 0 [99:104, 98:1]
view v2 = b1 at 0 [98:104, 98:1]
view v3 = b1 at 104 [98:104, 98:1]
view v4 = b2 at 0 [98:104, 98:1]
i0: v1 = copy v0
i1: v4 = subtract v3, v2
";
        let mut batch = parse(text).unwrap();
        for index in 0..2 {
            batch.push_block(&[index], &[]);
        }
        let mut window = windows(&Survey::new(&batch.as_ref()), &WindowOptions { bytes: 20_000, stand_ins: true }, &[])
            .found
            .remove(0);
        let begins = align(&mut window);
        let rolling = |at: &usize| matches!(window.arrays[*at].home, Home::Rolling { .. });
        let rolling: Vec<usize> = (0..begins.len()).filter(rolling).map(|at| begins[at]).collect();
        // Not 3, as the bytes that it is made of.
        assert_eq!(rolling, [0]);
    }

    #[test]
    fn short_rows_follow_each_other() {
        let mut window = window(40);
        let pitches = |window: &SlidingWindow| window.arrays.iter().map(|array| array.pitch).collect::<Vec<_>>();
        let before = pitches(&window);
        align(&mut window);
        assert_eq!((pitches(&window), before.contains(&38)), (before, true));
    }

    #[test]
    fn line_buffers_lie_in_their_lines_as_those_in_memory() {
        let mut window = window(104);
        let begins = align(&mut window);
        let rolling = |array: &SlidingArray| matches!(array.home, Home::Rolling { .. });
        let at = window.arrays.iter().position(rolling).unwrap();
        // 102 elements are 13 lines, and the inside of the grid begins at its second column.
        assert_eq!((window.arrays[at].pitch, begins[at]), (104, 8));
        let joined = window.turns.iter().filter_map(|turn| turn.joined.as_ref());
        let mut places = Vec::new();
        for nest in window.nests.iter().chain(joined) {
            for slot in 0..nest.arrays.len() {
                let begin = begins[nest.arrays[slot] as usize] as i64;
                assert_eq!(nest.stage.parameters.stride(slot), [104, 1]);
                places.push((begin + 8 * nest.stage.parameters.starts[slot]).rem_euclid(64));
            }
        }
        assert!(places.len() >= 10 && places.iter().all(|&place| place == 8), "{places:?}");
    }
}
