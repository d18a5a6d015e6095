"""The doctor examined by itself: ``record`` and ``look`` see, ``files`` and ``works`` judge."""
