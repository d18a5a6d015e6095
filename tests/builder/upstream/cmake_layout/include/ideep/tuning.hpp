// Nothing is tuned here.
