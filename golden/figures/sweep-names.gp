# gnuplot goodput-a-to-b-curves.gp
set terminal svg size 760,460 dynamic noenhanced font 'DejaVu Sans,13'
set output 'goodput-a-to-b-curves.gp.svg'
set title 'Goodput, flow a to b by qdisc'
set xlabel 'qdisc'
set ylabel 'Goodput, bit/s'
set key outside below
set style fill transparent solid 0.2 noborder
set yrange [0:*]
set xtics rotate by -30 ('fq' 0, 'fq_codel' 1, 'pfifo_fast' 2)
set xrange [-0.5:2.5]
plot 'goodput-a-to-b-curves.dat' index 0 using 1:2 with points lc 1 notitle

# Goodput, flow a to b by qdisc
# : x, value, low, high, runs
0 9315818489.381828 NaN NaN 3
1 9042651158.85763 NaN NaN 3
2 6988622411.603389 NaN NaN 3


