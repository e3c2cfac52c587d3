//! One request to the kernel's routing socket (rtnetlink(7)), and its answer.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Sends `request` with `flags`, and waits for the kernel to say that it is done.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn request(request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let socket = send(request, NLM_F_ACK | flags)?;
    // The kernel answers before `send` returns, with one message.
    let mut answer = Vec::with_capacity(8192);
    socket.recv(&mut answer, 0)?;
    let answer = parse(&answer)?;
    match answer.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(()),
    }
}

/// Sends `request`, which has one answer.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn ask(request: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
    let socket = send(request, 0)?;
    let (bytes, _) = socket.recv_from_full()?;
    match parse(&bytes)?.payload {
        NetlinkPayload::InnerMessage(answer) => Ok(answer),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sends `request` for a list, and passes each of its entries to `each`.
///
/// # Errors
/// What the kernel answers.
pub(crate) fn list(
    request: RouteNetlinkMessage,
    mut each: impl FnMut(RouteNetlinkMessage),
) -> io::Result<()> {
    let socket = send(request, NLM_F_DUMP)?;
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let message = parse(rest)?;
            // Messages begin at multiples of four bytes.
            let length = (message.header.length as usize).next_multiple_of(4);
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(entry) => each(entry),
                _ => {}
            }
            rest = rest.get(length.max(4)..).unwrap_or_default();
        }
    }
}

fn send(request: RouteNetlinkMessage, flags: u16) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    Ok(socket)
}

fn parse(bytes: &[u8]) -> io::Result<NetlinkMessage<RouteNetlinkMessage>> {
    NetlinkMessage::deserialize(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}
