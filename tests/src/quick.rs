//! Kernels of devices that are built in little time.

/// Has PoCL build the kernels from here on without optimisation, which takes a third of the time; or with it again. Where all tests
/// are asked for (`BH_TEST_OPENCL=all`), it always optimises.
///
/// # Safety
/// No other thread may read the environment meanwhile but through `std::env`.
pub unsafe fn build_quickly(quickly: bool) {
    const FLAGS: &str = "POCL_EXTRA_BUILD_FLAGS";
    let all = std::env::var("BH_TEST_OPENCL").is_ok_and(|text| text == "all");
    // SAFETY: as `# Safety` asks.
    unsafe {
        match quickly && !all {
            true => std::env::set_var(FLAGS, "-cl-opt-disable"),
            false => std::env::remove_var(FLAGS),
        }
    }
}
