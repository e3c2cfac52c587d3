//! The Internet checksum (RFC 1071) with the TCP pseudo-header of IPv4 and IPv6.
