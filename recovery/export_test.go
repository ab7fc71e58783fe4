package recovery

// KindConnect is the kind of CONNECT calls.
const KindConnect = kindConnect
