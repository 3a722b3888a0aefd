"""The methods of pScheduler's tool plugin `landspeed`. Python 3.6 and its standard library are enough."""
