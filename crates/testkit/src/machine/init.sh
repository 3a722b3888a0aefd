#!/machine/bin/busybox sh
# First program of a machine: drivers, then a root from the disk or this one, then the agent.
export PATH=/machine/bin
/machine/bin/busybox --install -s /machine/bin
mkdir -p /proc /sys /dev /run /tmp /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
echo 3 > /proc/sys/kernel/printk
while read -r module; do
    insmod "/machine/modules/$module.ko" || echo "cannot load $module"
done < /machine/order
if grep -q ls.root /proc/cmdline; then
    mkdir -p /root /run/machine
    mount -t ext4 -o noatime /dev/vda /root
    cp -a /machine/bin /machine/landspeed /machine/agent /run/machine/
    # Only at the first boot: later ones find what the test left.
    [ -e /root/etc/machine-files ] || cp -a /machine/files/. /root/
    : > /root/etc/machine-files
    units=/run/systemd/system
    mkdir -p $units/multi-user.target.wants
    printf '[Unit]\nDescription=Agent of the test\nAfter=multi-user.target\n[Service]\nType=simple\nExecStart=/run/machine/bin/busybox sh /run/machine/agent\n' > $units/machine-agent.service
    ln -s ../machine-agent.service $units/multi-user.target.wants/
    mount --move /run /root/run
    umount /proc /sys
    mount --move /dev /root/dev
    exec switch_root /root /sbin/init
fi
mkdir -p /sys/fs/cgroup /dev/shm /disk
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs shm /dev/shm
mount -t ext4 /dev/vda /disk
ln -s /machine /run/machine
cp -a /machine/files/. /
ln -s /machine/bin/busybox /bin/sh
ip link set lo up
exec setsid sh /machine/agent
