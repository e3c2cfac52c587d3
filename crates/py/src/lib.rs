//! The native part of the Python package `tack`: the simulator, its results as columns, codecs.
//!
//! Users import `python/tack`, which wraps and documents it.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "reports say how long a run took, as those of the program do"
)]

mod airtime;
mod columns;
mod controller;
mod keys;
mod lab;
mod mismatch;
mod policy;
mod reports;
mod rohc;
mod run;
mod running;
mod scenario;
mod sweep;
mod wire;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let scenario_error = py.get_type::<scenario::ScenarioError>();
    for attribute in ["file", "line", "key"] {
        scenario_error.setattr(attribute, py.None())?;
    }
    module.add("ScenarioError", scenario_error)?;
    module.add("SimulationError", py.get_type::<run::SimulationError>())?;
    module.add_class::<scenario::Scenario>()?;
    module.add("TaskMismatch", py.get_type::<mismatch::TaskMismatch>())?;
    module.add_class::<sweep::SweepState>()?;
    module.add_class::<sweep::SweepFolder>()?;
    module.add_class::<lab::LabState>()?;
    module.add_class::<reports::Reports>()?;
    module.add_class::<columns::Columns>()?;
    module.add_class::<controller::Init>()?;
    module.add_class::<controller::Ack>()?;
    module.add_class::<controller::Sent>()?;
    module.add_class::<controller::Congestion>()?;
    module.add_class::<policy::DataArrival>()?;
    module.add_class::<rohc::RohcCompressor>()?;
    module.add_class::<rohc::RohcDecompressor>()?;
    module.add_function(wrap_pyfunction!(run::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(run::simulate_many, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::sweep_embedded, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::run_batch, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::plan_text, module)?)?;
    module.add_function(wrap_pyfunction!(sweep::code_version, module)?)?;
    module.add_function(wrap_pyfunction!(lab::lab_code_version, module)?)?;
    module.add_function(wrap_pyfunction!(airtime::airtime, module)?)?;
    module.add_function(wrap_pyfunction!(wire::parse_tack_option, module)?)?;
    module.add_function(wrap_pyfunction!(wire::emit_tack_option, module)?)?;
    module.add_function(wrap_pyfunction!(wire::parse_tack_lists, module)?)?;
    module.add_function(wrap_pyfunction!(wire::emit_tack_lists, module)?)?;
    Ok(())
}
