// Package arith is what the kitex command generates for the service of arith.thrift.
package arith
