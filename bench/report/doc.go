// Package report measures the figures of docs/benchmarks.md, and writes them there.
//
// Its suite (suite.go) is a table of experiments. Each is the command line of a program, mostly
// farmsql bench, that writes its measurements to a file. Measure runs each as a process of its own,
// so that one heap does not disturb the next. It runs them in turns, A B C A B C, so that an hour
// in which the computer is busy disturbs all alike:
//
//	FOLDER/tatp-1m.2.json     what the second run of tatp-1m has measured
//	FOLDER/tatp-1m.2.log      its command line, and what it printed
//	FOLDER/NAME.1.profile     the profile of an experiment that is profiled; further profiles
//	                          (of each process, of allocations, of waits) have further endings
//
// An existing result of the same command line is not measured again: a report may be interrupted at
// any time and continued, or combined from results of several days. Measure reports experiments
// that failed, and runs the others.
//
// # Tables and plots
//
// Write reads the folder and replaces the text between
//
//	<!-- farmsql bench report: NAME -->
//	<!-- end -->
//
// in the document, where NAME is one of the sections (sections.go). It writes the plots of the
// sections into a folder beside the document, as SVG, which the document shows, and as PNG. Figures
// are medians of the runs. Each table has columns for the lowest and the highest figure, the number
// of runs, the size of the data, and what the data's memory survives. Each section states the
// conditions of its own results. Write divides a figure by a paper's figure only if both have the
// same number of replicas. A figure without a result is "not measured". A section without any
// result keeps its former text, if it has one.
//
// paper.go has the figures of the papers, and the goals.
package report
