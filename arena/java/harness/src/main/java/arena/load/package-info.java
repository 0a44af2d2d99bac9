/**
 * What the Java peers of the arena share, whatever their framework: the command lines of the contract and the load that
 * a client program makes. It does what {@code arena/workload} does for the peers in Go; where the two could differ,
 * that one is right.
 */
package arena.load;
