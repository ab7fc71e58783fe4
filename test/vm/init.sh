#!/bin/sh
# The first process of the virtual machine: loads the modules, makes one RDMA device for each host, runs
# /payload/run with its output to the second serial port, and says its status on the first.
export PATH=/bin
ip() { /bin/ip "$@"; } # and not that of busybox, which its shell prefers
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp

end() { # end STATUS [REASON]: switch off
	[ -z "$2" ] || echo "@@ reason $2"
	echo "@@ status $1"
	sync
	poweroff -f
}

while read -r m; do
	insmod "/modules/$m" || end 125 "insmod $m"
done </modules/order
ip link set lo up

first=1 hosts=1 # of the devices
if [ -f /payload/host ]; then
	# A host of its own: the others are on eth0, clients on eth1.
	first=$(cat /payload/host)
	hosts=$first
	ip addr add 10.7.0.$first/24 dev eth0 && ip link set eth0 mtu 4200 up || end 125 "interface eth0"
	ip addr add 10.0.2.15/24 dev eth1 && ip link set eth1 up || end 125 "interface eth1"
	rdma link add rxe$first type rxe netdev eth0 || end 125 "device rxe$first"
elif [ "$(cat /payload/hosts)" = 1 ]; then
	ip link add r1 mtu 4200 type dummy && ip addr add 10.7.0.1/24 dev r1 && ip link set r1 up || end 125 "interface r1"
	rdma link add rxe1 type rxe netdev r1 || end 125 "device rxe1"
else
	hosts=$(cat /payload/hosts)
	# All devices are in the first namespace, since rxe of Linux 6.1 carries out nothing in others. What one host
	# sends to another must leave by its own interface and come in by the other's, though all addresses are local:
	# the rules below look at what has come in, and at what leaves by which interface, before the table "local".
	ip link add br0 type bridge && ip link set br0 up || end 125 "bridge"
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
	i=1
	while [ $i -le "$hosts" ]; do
		ip link add r$i mtu 4200 type veth peer name p$i mtu 4200 && ip link set p$i master br0 up || end 125 "interface r$i"
		for k in accept_local=1 rp_filter=0 arp_ignore=1 arp_announce=2; do
			echo "${k#*=}" >/proc/sys/net/ipv4/conf/r$i/"${k%=*}"
		done
		ip addr add 10.7.0.$i/24 dev r$i && ip link set r$i up || end 125 "address of r$i"
		ip route add 10.7.0.0/24 dev r$i src 10.7.0.$i table $((100 + i))
		ip route add local 10.7.0.$i dev r$i table $((100 + i))
		ip rule add pref $((10 + i)) iif r$i lookup local
		ip rule add pref $((100 + i)) oif r$i lookup $((100 + i))
		ip rule add pref $((200 + i)) from 10.7.0.$i lookup $((100 + i))
		rdma link add rxe$i type rxe netdev r$i || end 125 "device rxe$i"
		i=$((i + 1))
	done
	ip rule add pref 1000 lookup local && ip rule del pref 0 || end 125 "rules"
fi

# The GIDs of addresses appear a moment after the device.
i=$first
while [ $i -le "$hosts" ]; do
	tries=0
	until grep -q "0000:ffff:0a07:000$i" /sys/class/infiniband/rxe$i/ports/1/gids/* 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -le 200 ] || end 125 "rxe$i has no GID of 10.7.0.$i"
		sleep 0.05
	done
	i=$((i + 1))
done

stty -F /dev/ttyS1 raw -echo 2>/dev/null
echo "@@ begin $(cut -d' ' -f1 /proc/uptime)"
setsid /payload/run >/dev/ttyS1 2>&1 </dev/null
end $?
