use super::*;

#[test]
fn the_loopback_link_is_described_without_privilege() {
    let mut netlink = Netlink::open().expect("a netlink socket needs no privilege");
    let link = netlink.link(LinkId::Name("lo")).expect("every namespace has lo");
    assert_eq!(link.name, "lo");
    assert_eq!(
        link,
        Link { stats: link.stats.clone(), ..netlink.link(LinkId::Index(link.index)).expect("by index") }
    );
    assert!(link.stats.len() >= 23, "{} counters", link.stats.len());
    assert!(link.mtu_bytes > 0);
}
