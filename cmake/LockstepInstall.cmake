# Package files of the install tree are added here as the targets they describe appear.
