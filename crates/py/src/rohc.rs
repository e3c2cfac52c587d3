//! ROHC-TCP for pure acknowledgements.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tack_rohc::{Compressor, Config, Decompressor, Delivery, Mode};

fn mode(name: &str) -> PyResult<Mode> {
    match name {
        "rfc" => Ok(Mode::Rfc),
        "lean" => Ok(Mode::Lean),
        "lean-no-checksum" => Ok(Mode::LeanNoChecksum),
        _ => Err(PyValueError::new_err(format!(
            "expected \"rfc\", \"lean\" or \"lean-no-checksum\", got {name:?}"
        ))),
    }
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The compressing end of one flow of pure TCP acknowledgements.
///
/// :param mode: ``"rfc"``, or what TCP/HACK sends: ``"lean"``, ``"lean-no-checksum"``.
/// :param robustness: losses in a row that are survived, and one more; 1 to 11.
///
/// Sources: ROHC-TCP (RFC 6846); docs/hack.md for the lean modes.
#[pyclass(module = "tack._core")]
#[derive(Debug)]
pub(crate) struct RohcCompressor(Compressor);

#[pymethods]
impl RohcCompressor {
    #[new]
    #[pyo3(signature = (mode="rfc", robustness=4))]
    fn new(mode: &str, robustness: u8) -> PyResult<Self> {
        Ok(Self(Compressor::new(Config {
            mode: self::mode(mode)?,
            robustness,
        })))
    }

    /// Takes note of a packet that the decompressor received as it is.
    fn handle_native(&mut self, packet: &[u8]) -> PyResult<()> {
        self.0
            .handle_native(packet, Delivery::Certain)
            .map_err(refused)
    }

    /// The bytes of a compressed acknowledgement.
    fn compress(&mut self, packet: &[u8]) -> PyResult<Vec<u8>> {
        let compressed = self.0.compress(packet).map_err(refused)?;
        Ok(compressed.bytes.to_vec())
    }
}

/// The decompressing end of one flow.
///
/// :param mode: that of the compressor.
#[pyclass(module = "tack._core")]
#[derive(Debug)]
pub(crate) struct RohcDecompressor(Decompressor);

#[pymethods]
impl RohcDecompressor {
    #[new]
    #[pyo3(signature = (mode="rfc"))]
    fn new(mode: &str) -> PyResult<Self> {
        Ok(Self(Decompressor::new(self::mode(mode)?)))
    }

    /// Takes note of a packet that was received as it is.
    fn handle_native(&mut self, packet: &[u8]) -> PyResult<()> {
        self.0.handle_native(packet).map_err(refused)
    }

    /// The packet behind compressed bytes.
    fn decompress(&mut self, bytes: &[u8]) -> PyResult<Vec<u8>> {
        let decompressed = self.0.decompress(bytes).map_err(refused)?;
        Ok(decompressed.packet.to_vec())
    }
}
