// Package join lets machines on several hosts form a cluster from one token, without another
// service and without certificates made by hand.
//
//	machine 0                                      another host
//	  Found: makes the cluster's authority,
//	  certifies itself, writes a Token
//	         <------------- the administrator copies the token ------->
//	                                                 makes its key
//	         <-- Join: secret, address, public key --
//	  checks the secret, and that the address
//	  can be reached; gives the machine its
//	  number, writes down both, certifies it
//	         -- number, certificate, settings ------>
//	                                                 keeps them: Identity
//	         <-- Join again, until the founders are known --
//	  once as many machines as the store
//	  has are there:
//	         -- founders -------------------------->
//	                                                 raftstore.Create
//
// Machine 0 is the issuer: it alone has the authority's key, and so it alone admits machines.
// If it is gone for ever, an administrator makes another machine the issuer by giving it copies
// of ca-key.pem and machines.json; a list that lacks the founders, or that machine, is refused.
// The first machines, up to Settings.Founders, are the founders: they keep the configuration
// (cluster/raftstore). Machines that join later ask the founders for it.
//
// # What is promised
//
// A token has the address of the issuer, the hash of its authority's certificate, and a secret.
// The machine that joins refuses an issuer that does not show this authority, before it tells
// the secret. The issuer keeps only the secret's hash. A token counts its uses and has an end.
// A use belongs to one public key: a machine that has lost the answer asks again, and is told
// the same. Somebody who has copied the token has another key, and finds the token used up.
//
// Everything is on disk at the issuer before the answer leaves, and the machine's key is on disk before
// it asks, so both may be killed at any time: the machine asks again.
//
// While founders are missing, nobody has voted yet. Until then a machine whose folder was lost
// may join again at its address, and takes its former place; and a machine may change its
// address. Afterwards a machine without its folder is another machine, and a machine with
// another address is refused.
//
// # On disk
//
// The folder peer in the data folder: identity.json, ca.pem, cert.pem, key.pem, and at the issuer
// ca-key.pem, machines.json and the folder tokens. JSON files begin with a format version. Whoever
// has ca-key.pem can act as any machine: no backup of the data needs it. Without it the cluster goes
// on, but no machine can join any more.
package join
