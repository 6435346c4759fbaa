//! In which order folds are recorded to take their elements.

use super::*;
use bh_bytecode::AxisOrder;

fn sum(recorder: &Recorder, of: ArrayId, axes: u16) -> ArrayId {
    recorder.operate_new(Opcode::AddReduce, axes, None, &[Input::Array(of)], HERE).unwrap()
}

/// The axes of all sums so far, outermost first, and those that are walked backward.
fn orders(recorder: &Recorder, log: &Log) -> Vec<(Vec<u8>, u16)> {
    recorder.sync().unwrap();
    let mut all = Vec::new();
    for batch in lock(&log.batches).iter() {
        for instr in batch.instrs.iter().filter(|instr| instr.opcode == Opcode::AddReduce) {
            let rank = batch.views[instr.operands[1].as_view().unwrap() as usize].rank as usize;
            let order = AxisOrder::decode(instr.order, rank).unwrap();
            all.push((order.axes().to_vec(), order.backward()));
        }
    }
    all
}

#[test]
fn folds_go_through_memory_wherever_batches_end() {
    for max_instructions in [1, 2, 7, 1000] {
        let (recorder, log) = context(Options { max_instructions, ..Options::default() });
        let a = array(&recorder, &[2, 3], &[1.0; 6]);
        let turned = recorder.derive(a, |view| view.transpose(&[1, 0])).unwrap();
        let back = recorder.derive(turned, |view| view.reverse(0)).unwrap();
        let double = |of: ArrayId| {
            recorder.operate_new(Opcode::Multiply, 0, None, &[Input::Array(of), number(2.0)], HERE).unwrap()
        };
        sum(&recorder, a, 0b11);
        sum(&recorder, turned, 0b01);
        sum(&recorder, back, 0b01);
        // The direction along kept axes is no part of a fold.
        sum(&recorder, back, 0b10);
        // Folds of arrays computed from it take its order; folds of a sum's result are in C order again.
        let made = double(double(back));
        sum(&recorder, made, 0b11);
        sum(&recorder, double(a), 0b11);
        let columns = sum(&recorder, made, 0b01);
        sum(&recorder, double(columns), 0b1);
        let wanted = [
            (vec![0, 1], 0),
            (vec![1, 0], 0),
            (vec![1, 0], 1),
            (vec![1, 0], 0),
            (vec![1, 0], 1),
            (vec![0, 1], 0),
            (vec![1, 0], 1),
            (vec![0], 0),
        ];
        assert_eq!(orders(&recorder, &log), wanted, "{max_instructions} operations");
    }
}

#[test]
fn factors_that_repeat_say_nothing_and_arrays_in_use_have_their_own_order() {
    let (recorder, log) = context(Options::default());
    let (a, b) = (array(&recorder, &[2, 3], &[1.0; 6]), array(&recorder, &[4, 3], &[1.0; 12]));
    // a (rows, inner) times b (columns, inner) transposed: the inner axis comes before the columns in b's memory.
    let left = recorder.derive(a, |view| view.new_axis(1)).unwrap();
    let right = recorder.derive(b, |view| view.transpose(&[1, 0])?.new_axis(0)).unwrap();
    let left = recorder.derive(left, |view| view.transpose(&[0, 2, 1])).unwrap();
    let product = recorder.operate_new(Opcode::Multiply, 0, None, &[left, right].map(Input::Array), HERE).unwrap();
    sum(&recorder, product, 0b010);
    for _ in 0..40 {
        sum(&recorder, product, 0b111);
    }
    let all = orders(&recorder, &log);
    assert_eq!(all[0], (vec![0, 2, 1], 0));
    assert_eq!((all[1].0.as_slice(), all[40].0.as_slice()), (&[0, 2, 1][..], &[0, 1, 2][..]));
}
