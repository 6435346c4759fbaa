#!/bin/sh
# two_hosts.sh COMMAND...: runs a command on two ranks of Open MPI that are connected by TCP alone, each in a network name
# space with a host name of its own. Needs root, ip and unshare.
set -eu
a="bh-a-$$" b="bh-b-$$"
agent=$(mktemp)
trap 'ip netns del "$a" 2>/dev/null || :; ip netns del "$b" 2>/dev/null || :; rm -f "$agent"' EXIT
ip netns add "$a"
ip netns add "$b"
ip -n "$a" link add veth0 type veth peer name veth0 netns "$b"
ip -n "$a" addr add 10.77.0.1/24 dev veth0
ip -n "$b" addr add 10.77.0.2/24 dev veth0
for space in "$a" "$b"; do
    ip -n "$space" link set lo up
    ip -n "$space" link set veth0 up
done
cat > "$agent" <<END
#!/bin/sh
shift
exec ip netns exec $b unshare -u sh -c "hostname two; \$*"
END
chmod +x "$agent"
ip netns exec "$a" unshare -u sh -c 'hostname one; exec "$@"' sh \
    mpirun.openmpi --host 10.77.0.1:1,10.77.0.2:1 --mca plm_rsh_agent "$agent" --mca pml ob1 --mca btl tcp,self \
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 --bind-to none \
    $(env | sed -n 's/^\(\(TEST\|BH\)_[A-Z_]*\)=.*/-x \1/p') -n 2 "$@"
