//! Where stories are played.

/// Keeps a story and the threads that it starts on one core: they take turns, and waking another core
/// for each turn takes longer than most turns.
#[cfg(target_os = "linux")]
pub(crate) fn stay_on_one(number: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let allowed = sched_getaffinity(None).unwrap();
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|core| allowed.is_set(*core))
        .collect();
    let mut one = CpuSet::new();
    one.set(cores[number % cores.len()]);
    sched_setaffinity(None, &one).unwrap();
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn stay_on_one(_: usize) {}
