# Runs each script that arrives, up to the line that ends it, and answers with its status and output.
export PATH=/run/machine:/usr/sbin:/usr/bin:/sbin:/bin:/run/machine/bin HOME=/run NO_COLOR=1
cd /run/machine
exec < /dev/ttyS1 > /dev/ttyS1 2> /dev/null
stty raw -echo
echo "LS READY"
: > script
# A machine whose test is gone ends.
while IFS= read -r -t 900 line; do
    case $line in
    "LS RUN "*)
        number=${line##* }
        (cd /; exec /bin/sh /run/machine/script) > out 2> err < /dev/null
        echo "LS $number $? $(wc -c < out) $(wc -c < err)"
        cat out err
        : > script
        ;;
    *) printf '%s\n' "$line" >> script ;;
    esac
done
busybox poweroff -f
