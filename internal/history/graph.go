package history

// A relation is the reason why one transaction comes before another.
type relation uint8

const (
	wr     relation = iota // the earlier transaction wrote what the later one read
	ww                     // the earlier transaction wrote what the later one replaced
	rw                     // the earlier transaction read what the later one replaced
	inTime                 // the earlier transaction had ended when the later one began
)

// An edge leads to a transaction or to a point in time.
type edge struct {
	to     int
	kind   relation
	object Object
	value  Value // the value that the earlier transaction wrote or read
	next   Value // the value that replaced it
}

// A graph has the transactions as its first nodes; points in time follow.
type graph struct {
	txs   int
	edges [][]edge
}

func newGraph(txs int) *graph { return &graph{txs: txs, edges: make([][]edge, txs)} }

// addNodes adds n nodes and returns the first.
func (g *graph) addNodes(n int) int {
	first := len(g.edges)
	g.edges = append(g.edges, make([][]edge, n)...)
	return first
}

func (g *graph) add(from int, e edge) { g.edges[from] = append(g.edges[from], e) }

// components returns the groups of more than one node whose nodes are all reachable from each
// other. It is Tarjan's algorithm with a stack of its own, because a history can be deeper than a
// goroutine's stack should be.
func (g *graph) components() [][]int {
	s := &search{g: g, order: make([]int, len(g.edges)), low: make([]int, len(g.edges)), on: make([]bool, len(g.edges))}
	for node := range g.edges {
		if s.order[node] == 0 {
			s.run(node)
		}
	}
	return s.found
}

type search struct {
	g     *graph
	count int
	order []int  // 1 + when a node was first visited; 0 if it was not
	low   []int  // the earliest node known to be reachable and still open
	on    []bool // whether the node is in open
	open  []int  // nodes without a component yet
	path  []step
	found [][]int
}

// A step is a node on the current path and how many of its edges were taken.
type step struct{ node, taken int }

// run visits all nodes that can be reached from root and were not visited before.
func (s *search) run(root int) {
	s.enter(root)
	for len(s.path) > 0 {
		at := &s.path[len(s.path)-1]
		if edges := s.g.edges[at.node]; at.taken < len(edges) {
			to := edges[at.taken].to
			at.taken++
			if s.order[to] == 0 {
				s.enter(to)
			} else if s.on[to] {
				s.low[at.node] = min(s.low[at.node], s.order[to])
			}
			continue
		}
		s.leave(at.node)
	}
}

// enter begins the visit of a node.
func (s *search) enter(node int) {
	s.count++
	s.order[node], s.low[node] = s.count, s.count
	s.on[node] = true
	s.open = append(s.open, node)
	s.path = append(s.path, step{node: node})
}

// leave ends the visit of a node. If no earlier open node can be reached from it, the open nodes
// from it on are a component.
func (s *search) leave(node int) {
	s.path = s.path[:len(s.path)-1]
	if len(s.path) > 0 {
		parent := s.path[len(s.path)-1].node
		s.low[parent] = min(s.low[parent], s.low[node])
	}
	if s.low[node] != s.order[node] {
		return
	}
	var group []int
	for last := -1; last != node; {
		last = s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
		s.on[last] = false
		group = append(group, last)
	}
	if len(group) > 1 {
		s.found = append(s.found, group)
	}
}

// shortestCycle returns the shortest cycle through node within the group, counted
// in transactions; nil if none is shorter than limit. Points in time have length 0,
// so they are visited first.
func (g *graph) shortestCycle(node int, inGroup []bool, limit int) []edge {
	type arrival struct {
		from int
		by   edge
	}
	came := make(map[int]arrival)
	now, later := []int{node}, []int(nil)
	for length := 1; length < limit && len(now) > 0; length++ {
		for len(now) > 0 {
			at := now[len(now)-1]
			now = now[:len(now)-1]
			for _, e := range g.edges[at] {
				if _, seen := came[e.to]; seen || !inGroup[e.to] {
					continue
				}
				came[e.to] = arrival{at, e}
				if e.to == node {
					var cycle []edge
					for back := node; len(cycle) == 0 || back != node; back = came[back].from {
						cycle = append(cycle, came[back].by)
					}
					return cycle
				}
				if e.to >= g.txs {
					now = append(now, e.to)
				} else {
					later = append(later, e.to)
				}
			}
		}
		now, later = later, now
	}
	return nil
}
