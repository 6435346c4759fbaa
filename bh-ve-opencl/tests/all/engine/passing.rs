//! Elements that an engine passes to another one of the process. With CUDA, devices copy directly; with OpenCL, through pinned memory.

use crate::support::{alone, count, load};
use bh_bytecode::batch::NO_BASE;
use bh_bytecode::random::Rng;
use bh_bytecode::{Base, Batch, Constant, DType, Instr, Opcode, Operand, View, base_flags};
use bh_core::abi::{HostMemory, retire};
use bh_core::stack::Stack;
use bh_tests::stacks;
use std::sync::atomic::Ordering;

const KEYS: &str = "placement = 'device'\nspecialise = 'off'\ncache_dir = ''\nwhile_building = 'off'";

/// An array on a device, and the values that it must have.
struct Array {
    base: Base,
    values: Vec<i64>,
}

impl Array {
    /// The numbers from `first` on.
    fn new(stack: &mut Stack, len: i64, first: i64) -> Array {
        let id = stack.services().base_ids().fetch_add(1, Ordering::Relaxed);
        let mut array = Array { base: Base::new(id, DType::I64, len), values: (0..len).collect() };
        array.run(stack, base_flags::BORN, |batch, whole| {
            let numbers = batch.push_view(NO_BASE, &View::contiguous(&[len]).unwrap());
            Instr::new(Opcode::Range, &[whole, Operand::view(numbers)])
        });
        array.add(stack, first);
        array
    }

    fn run(&self, stack: &mut Stack, flags: u32, instr: impl FnOnce(&mut Batch, Operand) -> Instr) {
        let mut batch = Batch::default();
        let base = batch.push_base(Base { flags: flags | base_flags::LIVE_OUT, ..self.base });
        let whole = Operand::view(batch.push_view(base, &View::contiguous(&[self.base.len]).unwrap()));
        let instr = instr(&mut batch, whole);
        batch.push_instr(instr);
        // Nobody waits: the queues keep the order.
        let _ticket = stack.execute(&batch.as_ref(), &[]).unwrap();
    }

    /// Adds a number to all elements, on the device.
    fn add(&mut self, stack: &mut Stack, number: i64) {
        self.run(stack, 0, |batch, whole| {
            let number = Operand::constant(batch.push_constant(Constant::from_value(number)));
            Instr::new(Opcode::Add, &[whole, whole, number])
        });
        self.values.iter_mut().for_each(|value| *value += number);
    }

    fn read(&self, stack: &mut Stack) -> Vec<i64> {
        let mut found = vec![0i64; self.values.len()];
        // SAFETY: `found` has room for all elements, 8 bytes apart.
        let memory = unsafe { HostMemory::new(found.as_mut_ptr().cast(), &[8]) };
        stack.read(&self.base, &View::contiguous(&[self.base.len]).unwrap(), &memory).unwrap();
        found
    }

    fn check(&self, stack: &mut Stack) {
        assert!(self.read(stack) == self.values);
    }

    fn discard(self, stack: &mut Stack) {
        stack.retire(&self.base, retire::DISCARD).unwrap();
    }

    /// The place of a view in messages.
    fn place(&self, view: &View) -> String {
        let Base { id, len, .. } = self.base;
        let numbers: Vec<String> = view.shape().iter().chain(view.stride()).map(i64::to_string).collect();
        format!("{id} {} {len} {} {} {}", DType::I64 as u8, view.start(), view.rank(), numbers.join(" "))
    }
}

/// The places of a view's elements, in order.
fn places(view: &View) -> Vec<usize> {
    let (mut index, len) = (vec![0i64; view.rank()], view.len());
    let mut all = Vec::new();
    for _ in 0..len {
        let place: i64 = index.iter().zip(view.stride()).map(|(at, step)| at * step).sum();
        all.push((view.start() + place) as usize);
        for (at, extent) in index.iter_mut().zip(view.shape()).rev() {
            *at += 1;
            if *at < *extent {
                break;
            }
            *at = 0;
        }
    }
    all
}

/// The sender and the receiver: two engines on one device, or on two where the tests have two.
fn both() -> Option<[Stack; 2]> {
    Some([load("'opencl'", KEYS)?, load("'opencl'", KEYS)?])
}

fn offer(stack: &mut Stack, way: &str, places: &str) -> (String, String) {
    let answer = stack.message(&format!("offer {way} {places}")).unwrap();
    let (name, state) = answer.split_once(' ').unwrap();
    (name.to_owned(), state.to_owned())
}

/// Random views of random arrays, as the sender has them when it offers them. The sender goes on writing to its array, before the offer is
/// taken where it may, and afterwards. Arrays that are written as a whole need not be there before.
#[test]
fn any_views_arrive_as_they_were_offered() {
    let _alone = alone();
    let Some([mut from, mut to]) = both() else { return };
    let mut rng = Rng::new(11);
    for round in 0..40 {
        let len = 200 + rng.below(3000) as i64;
        let mut source = Array::new(&mut from, len, 1000 * round);
        let (rows, width) = (1 + rng.below(6) as i64, 1 + rng.below(20) as i64);
        let pitch = width + rng.below(10) as i64;
        let views = [
            View::new(rng.below(5) as i64, &[rows, width], &[pitch, 1]).unwrap(),
            View::new(3, &[rows, width], &[1, rows]).unwrap(),
            View::new(rows * width + 2, &[rows * width], &[-1]).unwrap(),
            View::new(rng.below(9) as i64, &[rows * width], &[1]).unwrap(),
        ];
        let sent = &views[rng.below(4)];
        let whole = rng.below(4) == 0;
        let received = if whole { View::contiguous(&[rows * width]).unwrap() } else { views[rng.below(4)] };
        let mut target = if whole {
            let id = to.services().base_ids().fetch_add(1, Ordering::Relaxed);
            Array { base: Base::new(id, DType::I64, rows * width), values: vec![0; (rows * width) as usize] }
        } else {
            Array::new(&mut to, len, -7)
        };
        let way = ["direct", "staged"][rng.below(2)];
        let before = source.values.clone();
        let (name, state) = offer(&mut from, way, &source.place(sent));
        if state == "filled" {
            source.add(&mut from, 50);
        }
        assert_eq!(to.message(&format!("take {name} {}", target.place(&received))).unwrap(), "taken");
        source.add(&mut from, 70);
        for (at, place) in places(&received).into_iter().zip(places(sent)) {
            target.values[at] = before[place];
        }
        target.check(&mut to);
        source.check(&mut from);
        source.discard(&mut from);
        target.discard(&mut to);
    }
    for stack in [&mut from, &mut to] {
        assert_eq!(stack.message("leaks").unwrap().lines().last(), Some("0 arrays alive, 0 bytes of host memory"));
    }
}

/// More elements than a piece of pinned memory has, in two places, both ways at once.
#[test]
fn long_offers_arrive() {
    let _alone = alone();
    let Some([mut one, mut other]) = both() else { return };
    let len = 3 << 20;
    for way in ["direct", "staged"] {
        let (mut first, mut second) = (Array::new(&mut one, len, 5), Array::new(&mut other, len, -9));
        let (low, high) =
            (View::new(0, &[len / 2 - 3], &[1]).unwrap(), View::new(len / 2, &[len / 2 - 3], &[1]).unwrap());
        let there = offer(
            &mut one,
            way,
            &format!("{};{}", first.place(&low), first.place(&View::new(len - 2, &[2], &[1]).unwrap())),
        );
        let back = offer(&mut other, way, &second.place(&high));
        assert_eq!(there.1, if way == "direct" && stacks::driver() == "cuda" { "direct" } else { "held" });
        let end = second.place(&View::new(len / 2 - 3, &[2], &[1]).unwrap());
        other.message(&format!("take {} {};{end}", there.0, second.place(&low))).unwrap();
        one.message(&format!("take {} {}", back.0, first.place(&high))).unwrap();
        let half = (len / 2) as usize;
        let kept = second.values[half..].to_vec();
        let [.., before, last] = first.values[..] else { unreachable!() };
        second.values[..half - 3].copy_from_slice(&first.values[..half - 3]);
        second.values[half - 3..half - 1].copy_from_slice(&[before, last]);
        first.values[half..2 * half - 3].copy_from_slice(&kept[..half - 3]);
        first.check(&mut one);
        second.check(&mut other);
        first.discard(&mut one);
        second.discard(&mut other);
    }
    assert_eq!(count(&other, "peer_bytes") > 0, stacks::driver() == "cuda");
}

/// An engine gives only what it has offered itself, once, and only to places with the same elements.
#[test]
fn other_offers_and_places_are_refused() {
    let _alone = alone();
    let Some([mut from, mut to]) = both() else { return };
    let (source, target) = (Array::new(&mut from, 100, 1), Array::new(&mut to, 100, 2));
    let part = |start, len| View::new(start, &[len], &[1]).unwrap();
    for places in ["", "1 2", "x 1 1 0 1 1 1", &source.place(&part(95, 10)), "999999 8 10 0 1 10 1"] {
        assert!(from.message(&format!("offer direct {places}")).is_err(), "{places}");
    }
    let named =
        |to: &mut Stack, name: &str, view: View| to.message(&format!("take {name} {}", target.place(&view))).is_ok();
    for (start, len) in [(0, 9), (0, 11), (95, 10)] {
        let (name, _) = offer(&mut from, "direct", &source.place(&part(0, 10)));
        assert!(!named(&mut to, &name, part(start, len)), "{start} {len}");
        // The offer has ended.
        assert!(!named(&mut to, &name, part(0, 10)));
    }
    let (name, _) = offer(&mut from, "staged", &source.place(&part(3, 2)));
    let (driver, number) = name.split_once(':').unwrap();
    for wrong in [format!("other:{number}"), format!("{driver}:x"), format!("{driver}:99999999"), number.to_owned()] {
        assert!(!named(&mut to, &wrong, part(0, 2)), "{wrong}");
    }
    let told: String =
        source.values[3..5].iter().flat_map(|value| value.to_ne_bytes()).map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(from.message(&format!("tell {name}")).unwrap(), told);
    let (name, _) = offer(&mut from, "direct", &source.place(&part(0, 10)));
    from.message(&format!("withdraw {name}")).unwrap();
    assert!(!named(&mut to, &name, part(0, 10)));
    // Offers of a closed engine are gone.
    let (name, _) = offer(&mut from, "direct", &source.place(&part(0, 10)));
    drop(from);
    assert!(!named(&mut to, &name, part(0, 10)));
    target.check(&mut to);
}
