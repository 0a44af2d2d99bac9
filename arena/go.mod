module github.com/anser-rpc/anser/arena

go 1.26.0
