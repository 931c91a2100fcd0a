# Rscript fleet_public_air.R air.rda: daily PM10 of stations as CSV; a group is a state (DESH... is Schleswig-Holstein).
e <- new.env()
load(commandArgs(TRUE)[1], envir = e)
n <- nrow(e$air)
x <- data.frame(time = rep(format(e$dates), each = n), group = substr(rownames(e$air), 3, 4),
	member = rownames(e$air), pm10 = round(as.vector(e$air), 3))
cat("# metric pm10 unit=ug/m3 worse=more kind=gauge zero=value\n")
write.csv(x[!is.na(x$pm10), ], row.names = FALSE, quote = FALSE)
