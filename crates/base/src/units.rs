//! Reading and printing quantities with units: `200ms`, `54Mbps`, `64KiB`.
