//! A repeated batch allocates nothing.

use crate::support;

use bh_bytecode::interp::Memory;
use bh_bytecode::text;
use bh_core::reserve::allocations;
use support::{Driver, singletons};

#[test]
fn repeated_batches_allocate_nothing() {
    let (mut tables, mut memory) = (String::from("bh batch 1\n"), Memory::new());
    for array in 0..6 {
        tables += &format!("base b{array} = f64[40000] id {}\n", array + 1);
        memory.insert(array + 1, vec![0; 320_000]);
    }
    (0..6).for_each(|array| tables += &format!("view v{array} = b{array} at 0 [40000:1]\n"));
    (0..6).for_each(|array| tables += &format!("v{array} = sqrt v{array}\nv{array} = add v{array}, v{array}\n"));
    let batch = singletons(&text::parse(&tables).unwrap());
    let counts = ["1", "2"].map(|threads| {
        let keys = [("threads", threads), ("jit", "off")];
        let mut driver = Driver::new(&keys).unwrap();
        driver.run_on(&batch.as_ref(), &memory).unwrap();
        // Where the helper is early, it takes all of a run; the caller gets its working memory with its first share.
        (0..20).for_each(|_| driver.run(&batch.as_ref()).unwrap());
        let before = allocations();
        (0..50).for_each(|_| driver.run(&batch.as_ref()).unwrap());
        allocations() - before
    });
    assert_eq!(counts, [0, 0]);
}
