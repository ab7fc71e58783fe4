// Package report measures what docs/benchmarks.md says, and writes it there.
//
// Its suite (suite.go) is a table of experiments, each the command line of a
// program, mostly farmsql bench, that writes what it has measured to a file. Measure runs them, each as a
// process of its own, so that one heap does not disturb the next, and in turns, A B
// C A B C, so that an hour in which the computer is busy disturbs all alike:
//
//	FOLDER/tatp-1m.2.json     what the second run of tatp-1m has measured
//	FOLDER/tatp-1m.2.log      its command line, and what it printed
//	FOLDER/NAME.1.profile     its profiles, if it is one that is profiled, with more
//	                          endings: of each process, allocations, waits
//
// A result that is there already, of the same command line, is not measured again: a
// report may be interrupted at any time and gone on with, or be put together from
// results of several days. Experiments that failed are said, and do not keep the
// others from running.
//
// # Tables and plots
//
// Write reads the folder and replaces what stands between
//
//	<!-- farmsql bench report: NAME -->
//	<!-- end -->
//
// in the document, NAME being one of the sections (sections.go), and writes the plots that
// they show into a folder beside it, as SVG, which the document shows, and as PNG. Figures are
// medians of the runs; each table has columns of the lowest and the highest, of how many runs
// there were, of the data and of what the memory outlives that they were in. Each section says
// under which conditions its own results came about. Only figures with as many replicas as the
// papers' are divided by them. A figure for which there is no result is "not measured". A
// section that has no result at all keeps what it said before, unless that is nothing.
//
// The figures of the papers, and those that are aimed at, stand in paper.go.
package report
