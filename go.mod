module github.com/anser-rpc/anser

go 1.26
