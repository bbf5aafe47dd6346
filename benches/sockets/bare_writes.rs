//! The lower bound of a delivery's cost: a program that writes the bytes of one delta's frame to each of
//! many sockets, at the same pace, and does nothing else.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use std::{env, thread};

/// The variable with the number of sockets. Set only in the process that writes.
pub const SOCKETS: &str = "BENCH_BARE_WRITES_SOCKETS";
/// Header and payload of one delta.
pub const FRAME_BYTES: usize = 105;

/// Accepts the sockets and writes to them until it is killed, if this process is to do so; otherwise
/// returns.
pub fn run_if_selected(pace: Duration) {
    let Ok(n_sockets) = env::var(SOCKETS) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("listening on http://{}", listener.local_addr().unwrap());
    let accept = |_| {
        let (socket, _) = listener.accept().unwrap();
        socket.set_nodelay(true).unwrap();
        socket
    };
    let n_sockets: usize = n_sockets.parse().unwrap();
    let mut sockets: Vec<TcpStream> = (0..n_sockets).map(accept).collect();
    let began = Instant::now();
    for round in 1.. {
        for socket in &mut sockets {
            socket.write_all(&[b'x'; FRAME_BYTES]).unwrap();
        }
        thread::sleep((pace * round).saturating_sub(began.elapsed()));
    }
}
