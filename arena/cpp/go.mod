// outside go.work: its tests need a C++ compiler.
module github.com/anser-rpc/anser/arena/cpp

go 1.26.0

require github.com/HdrHistogram/hdrhistogram-go v1.4.0
