//! Base URLs that try to reach forbidden addresses.

/// Hosts in every spelling that leads to this machine or a network around it, for use in
/// `http://HOST:PORT/v1`.
pub const HOSTS: [&str; 83] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7F.1",
    "0x7f.0x0.0x0.0x1",
    "0177.0.0.1",
    "0177.0.0.01",
    "017700000001",
    "00000177.0.0.1",
    "0x7f.1",
    "0x7F.0.0.0x1",
    "127.0x000001",
    "%31%32%37.0.0.1",
    "１２７.０.０.１",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "0",
    "0.0.0.0",
    "0x0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "167772161",
    "0xa.1",
    "012.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "3232235521",
    "100.64.0.1",
    "198.18.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "203.0.113.7",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:0:127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:c0a8:1]",
    "[2002:c0a8:1::1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:db8::1]",
    "[fe80::1]",
    "[febf::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd12:3456:789a::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ｌｏｃａｌｈｏｓｔ",
    "models.localhost",
];

/// Whole URLs whose host is not what it looks like, or that are not HTTP. `{port}` is the port of a
/// server that must not be called.
pub const URLS: [&str; 16] = [
    "http://8.8.8.8@127.0.0.1:{port}/v1",
    "http://user:word@127.0.0.1:{port}/v1",
    "http://example.com:80@127.0.0.1:{port}/v1",
    "http://127.0.0.1:{port}\\@example.com/v1",
    "http:127.0.0.1:{port}/v1",
    "http:/127.0.0.1:{port}/v1",
    "http:\\\\127.0.0.1:{port}\\v1",
    "http:////127.0.0.1:{port}/v1",
    "HtTp://127.0.0.1:{port}/v1/chat/completions",
    "http://127.0.\n0.1:{port}/v1",
    "http://127.0.0.1:{port}/v1?x=https://example.com",
    "http://127.0.0.1:{port}/v1#@example.com",
    "//127.0.0.1:{port}/v1",
    "ftp://127.0.0.1:{port}/v1",
    "gopher://127.0.0.1:{port}/_GET",
    "file:///etc/passwd",
];

/// Names that pass every check of the URL, and the addresses that they resolve to.
pub const NAMES: &[(&str, &[&str])] = &[
    ("home.example", &["127.0.0.1"]),
    ("six.example", &["::1"]),
    ("both.example", &["127.0.0.1", "::1"]),
    ("mapped.example", &["::ffff:127.0.0.1"]),
    ("nat64.example", &["64:ff9b::7f00:1"]),
    ("any.example", &["0.0.0.0", "::"]),
    ("lan.example", &["10.0.0.1", "192.168.1.1"]),
    ("metadata.google.internal", &["169.254.169.254"]),
    ("127.0.0.1.nip.example", &["127.0.0.1"]),
    // Resolves to a different address each time.
    ("turning.example", &["::1"]),
    ("turning.example", &["127.0.0.1"]),
];

/// Returns all of them as base URLs with this port.
pub fn base_urls(port: u16) -> Vec<String> {
    let hosts = HOSTS.iter().chain(NAMES.iter().map(|(name, _)| name));
    let hosts = hosts.map(|it| format!("http://{it}:{port}/v1"));
    let urls = URLS
        .iter()
        .map(|it| it.replace("{port}", &port.to_string()));
    let mut all: Vec<String> = hosts.chain(urls).collect();
    all.dedup();
    all
}

/// Returns whether a URL is rejected only when it is called, because its name must be resolved.
pub fn is_a_name(base_url: &str) -> bool {
    NAMES.iter().any(|(name, _)| base_url.contains(name))
}
