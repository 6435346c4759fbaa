//! Parts against the general views, subscript by subscript.

use super::Subscript::{Ellipsis, Index, NewAxis, Whole};
use super::*;
use bh_bytecode::View;
use bh_bytecode::random::Rng;

fn slice(start: Option<i64>, stop: Option<i64>, step: i64) -> Subscript {
    Subscript::Slice { start, stop, step }
}

/// The part by way of general views, and whether the list is one.
fn general(view: &View, list: &[Subscript]) -> Result<View> {
    let consumed = list.iter().filter(|entry| !matches!(entry, NewAxis | Ellipsis)).count();
    let Some(left_over) = view.rank().checked_sub(consumed) else { return Err(Error::new(status::SHAPE, "too many")) };
    let wrong = |error: bh_bytecode::ViewError| Error::new(status::BOUNDS, error.0);
    let (mut view, mut dim, mut left_over) = (*view, 0, Some(left_over));
    for entry in list {
        dim += match *entry {
            Index(index) => {
                view = view.index(dim, index).map_err(wrong)?;
                0
            }
            Subscript::Slice { start, stop, step } => {
                view = view.slice(dim, start, stop, step).map_err(wrong)?;
                1
            }
            Whole => 1,
            NewAxis => {
                view = view.new_axis(dim).map_err(wrong)?;
                1
            }
            Ellipsis => left_over.take().ok_or_else(two_ellipses)?,
        };
    }
    Ok(view)
}

fn part(view: &View, list: &[Subscript]) -> Result<SmallView> {
    SmallView::new(view).part(list.iter().map(|&entry| Ok(entry)))
}

/// Equal views, or equal errors; returns whether there is one.
fn compare(view: &View, list: &[Subscript]) -> bool {
    match (part(view, list), general(view, list)) {
        (Ok(small), Ok(general)) => {
            let expected = SmallView::new(&general);
            assert_eq!(small.view(), general.canonical(), "{view:?} {list:?}");
            assert!(small.same(&expected), "{view:?} {list:?}: the hash");
            let facts = |view: &SmallView| (view.len, view.injective, view.in_c_order);
            assert_eq!(facts(&small), facts(&expected), "{view:?} {list:?}");
            assert_eq!((small.len, small.injective), (general.len(), general.is_injective()), "{view:?} {list:?}");
            true
        }
        (Err(found), Err(expected)) => {
            assert_eq!(found.status, expected.status, "{view:?} {list:?}: {found}");
            assert!(expected.status == status::SHAPE || found.text == expected.text, "{found} {expected}");
            false
        }
        (found, expected) => panic!("{view:?} {list:?}: {:?} {expected:?}", found.map(|view| view.view())),
    }
}

fn random_view(rng: &mut Rng) -> View {
    let rank = rng.below(7);
    let shape: Vec<i64> = (0..rank).map(|_| [0, 1, 1, 2, 3, 5, 5, 9][rng.below(8)]).collect();
    let mut view = View::contiguous(&shape).unwrap();
    for dim in 0..rank {
        if rng.chance(30) {
            view = view.reverse(dim).unwrap();
        }
    }
    if rank > 1 && rng.chance(30) {
        let order: Vec<usize> = (0..rank).rev().collect();
        view = view.transpose(&order).unwrap();
    }
    if rng.chance(25) {
        let wide: Vec<i64> =
            [2, 3].into_iter().chain(view.shape().iter().map(|&extent| if extent == 1 { 4 } else { extent })).collect();
        view = view.broadcast_to(&wide).unwrap();
    }
    view
}

fn random_list(rng: &mut Rng, rank: usize) -> Vec<Subscript> {
    let bound = |rng: &mut Rng| if rng.chance(40) { None } else { Some(rng.between(-7, 12)) };
    let count = rng.below(rank + 3);
    let entry = |_| match rng.below(12) {
        0..4 => Index(rng.between(-3, 4)),
        4..8 => slice(bound(rng), bound(rng), *rng.pick(&[1, 1, 2, 3, -1, -2, 100, 0]).unwrap_or(&1)),
        8 => Ellipsis,
        9 => NewAxis,
        _ => Whole,
    };
    (0..count).map(entry).collect()
}

#[test]
fn parts_are_those_of_general_views() {
    let mut rng = Rng::new(11);
    let mut found = [0; 2];
    for _ in 0..50_000 {
        let view = random_view(&mut rng);
        let list = random_list(&mut rng, view.rank());
        found[usize::from(compare(&view, &list))] += 1;
    }
    assert!(found[0] > 5000 && found[1] > 5000, "{found:?}");
}

#[test]
fn parts_of_parts_keep_what_is_known_of_them() {
    let mut rng = Rng::new(12);
    for _ in 0..10_000 {
        let view = random_view(&mut rng);
        let (first, second) = (random_list(&mut rng, view.rank()), random_list(&mut rng, view.rank()));
        if let Ok(between) = general(&view, &first) {
            compare(&between, &second);
        }
    }
}

#[test]
fn lists_of_subscripts() {
    let view = View::contiguous(&[3, 4, 5]).unwrap();
    let found = part(&view, &[Index(1), Ellipsis, slice(None, None, -1)]).unwrap();
    assert_eq!((found.start, found.shape(), found.stride()), (24, &[4, 5][..], &[5, -1][..]));
    let found = part(&view, &[Whole, NewAxis, slice(Some(1), Some(-1), 1)]).unwrap();
    assert_eq!((found.start, found.shape()), (5, &[3, 1, 2, 5][..]));
    let found = part(&view, &[slice(Some(-9), Some(9), 2), slice(Some(9), Some(12), 1)]).unwrap();
    assert_eq!(found.shape(), &[2, 0, 5], "bounds are clipped");
}

#[test]
fn wrong_lists_are_refused() {
    let view = View::contiguous(&[3]).unwrap();
    for (list, code) in [
        (&[Index(3)][..], status::BOUNDS),
        (&[slice(Some(0), Some(3), 0)], status::BOUNDS),
        (&[Index(0), Index(0)], status::SHAPE),
        (&[Ellipsis, Ellipsis], status::ARGUMENT),
        (&[NewAxis; 17], status::BOUNDS),
    ] {
        assert_eq!(part(&view, list).err().map(|error| error.status), Some(code), "{list:?}");
    }
    let own = || Error::new(status::ARGUMENT, "no subscript");
    let list = [Ok(Index(0)), Err(own())];
    let given = list.iter().map(|entry| entry.as_ref().map(|&entry| entry).map_err(|_| own()));
    assert_eq!(SmallView::new(&view).part(given).err().map(|error| error.text), Some("no subscript".into()));
}

#[test]
fn extremes_do_not_overflow() {
    let view = View::contiguous(&[5, 7]).unwrap();
    let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
    for start in ends {
        for stop in ends {
            for step in ends {
                compare(&view, &[Whole, slice(Some(start), Some(stop), step)]);
            }
        }
        compare(&view, &[Index(start)]);
    }
}
