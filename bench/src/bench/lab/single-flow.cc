// The lab's single-flow benchmark in ns-3: one CUBIC connection over 10 Gb/s and 2 x 25 ms, MTU 9000, SACK,
// buffers just below what the path holds, which spares the simulator every loss. Arguments: virtual seconds, and the
// real seconds after which it gives up. Prints the real time it took and the virtual time it reached, seconds, and on
// standard error the payload bytes that arrived.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cstdlib>
#include <iostream>

using namespace ns3;

using Clock = std::chrono::steady_clock;

static double passed(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Ends the simulation once it has taken long enough; looks every virtual millisecond.
static void watch(Clock::time_point begun, double limit) {
    if (passed(begun) > limit) {
        Simulator::Stop();
    } else {
        Simulator::Schedule(MilliSeconds(1), &watch, begun, limit);
    }
}

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 5.0;
    const double limit = argc > 2 ? std::atof(argv[2]) : 60.0;
    const uint32_t buffer = 60u << 20;
    // 9000 less IPv4 and TCP headers with the time stamp option, as Linux fills a frame.
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(8948));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));

    NodeContainer nodes;
    nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    link.SetDeviceAttribute("Mtu", UintegerValue(9000));
    link.SetChannelAttribute("Delay", StringValue("25ms"));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper internet;
    internet.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    // The device's own queue is the only one, as it is in the lab.
    TrafficControlHelper queues;
    queues.Uninstall(devices);

    const uint16_t port = 5202;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    ApplicationContainer server = sink.Install(nodes.Get(1));
    server.Start(Seconds(0));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), port));
    bulk.SetAttribute("SendSize", UintegerValue(1u << 16));
    bulk.SetAttribute("MaxBytes", UintegerValue(0));
    bulk.Install(nodes.Get(0)).Start(Seconds(0));

    Simulator::Stop(Seconds(seconds));
    const auto begun = Clock::now();
    watch(begun, limit);
    Simulator::Run();
    std::cout << passed(begun) << " " << Simulator::Now().GetSeconds() << std::endl;
    std::cerr << DynamicCast<PacketSink>(server.Get(0))->GetTotalRx() << " bytes" << std::endl;
    Simulator::Destroy();
    return 0;
}
